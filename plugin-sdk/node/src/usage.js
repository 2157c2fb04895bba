/** @file What a plugin is and how to use it, for someone who started it by hand. */

import { relative } from 'node:path';

/**
 * @param {any} manifest
 * @returns {string}
 */
export function usage(manifest) {
  const { name, version, description, operations } = manifest;
  const script = relative('', process.argv[1] ?? 'plugin.js');
  const lines = [`${name} ${version}, a plugd plugin`];
  if (description) lines.push(description);
  lines.push('', 'Operations:');
  const width = Math.max(0, ...operations.map((/** @type {any} */ operation) => operation.name.length));
  for (const operation of operations) lines.push(`  ${operation.name.padEnd(width)}  ${firstSentence(operation)}`);
  lines.push(
    '',
    'It speaks JSON-RPC over stdin and stdout, one message a line, and is started by plugd.',
    'Call an operation:',
    '',
    `  plugd call ./${script} ${callOf(operations[0])}`.trimEnd(),
    '',
    'Or add it to plugd.toml:',
    '',
    `  [plugins.${name}]`,
    `  command = ["node", ${JSON.stringify(script)}]`,
    '',
    'Or see what it declares:',
    '',
    `  node ${script} --describe`,
  );
  return lines.join('\n');
}

/** @param {any} operation */
function firstSentence({ description = '(no description)' }) {
  return description.split(/(?<=[.。])\s/)[0].replace(/\s+/g, ' ');
}

/**
 * An operation with what it requires, by its examples.
 * @param {any} operation
 */
function callOf(operation) {
  if (operation === undefined) return '';
  const { properties = {}, required = [] } = operation.input_schema;
  /** @param {string} key */
  const sample = (key) => {
    const { examples, enum: words, minimum } = properties[key] ?? {};
    const value = examples?.[0] ?? words?.[0] ?? minimum ?? '…';
    return `${key}=${typeof value === 'object' ? JSON.stringify(value) : value}`;
  };
  return [operation.name, ...required.map(sample)].join(' ');
}
