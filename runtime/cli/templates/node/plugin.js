#!/usr/bin/env node
/** @file The plugin PLUGIN_NAME: greets people. */

import { plugin, PluginError } from '#plugd-sdk';

/**
 * Greets somebody by name.
 *
 * @param {{ name: string }} args
 * @param {import('#plugd-sdk').Context} context
 */
export function hello({ name }, context) {
  const who = name.trim();
  if (who === '') {
    throw new PluginError('nobody_to_greet', 'the name is empty', { hint: 'give a name, such as name=Ada' });
  }
  context.info(`greeting ${who}`);
  return `Hello, ${who}!`;
}

export default plugin('PLUGIN_NAME', '0.1.0', { description: 'Greets people.' })
  .operation(
    'hello',
    {
      description: 'Greets somebody by name. Gives one friendly line back.',
      whenToUse: 'Somebody is to be greeted, or it is to be seen that the plugin works.',
      examples: ['say hello to Ada'],
      input: { name: { type: 'string', description: 'Who is greeted.', examples: ['Ada'] } },
      output: { type: 'string' },
      readOnly: true,
      idempotent: true,
    },
    hello,
  )
  .serve(import.meta);
