#!/usr/bin/env node
/** @file What every SDK makes alike: protocol/wire/sdk describes it. */

import { spawnSync } from 'node:child_process';

import { plugin, PluginError, Reply } from '../src/index.js';

function checkWord({ word }) {
  if (word === 'bad') throw new PluginError('bad_word', 'the word is bad');
}

export default plugin('golden', '1.2.3', {
  description: 'What every SDK makes alike.',
  requires: { other: '>=1.0' },
  config: { word: { type: 'string', description: 'The word to greet with.', default: 'hello' } },
})
  .init((config, context) => {
    checkWord(config);
    context.info('ready');
  })
  .reload(checkWord)
  .shutdown((context) => context.info('bye'))
  .operation(
    'greet',
    {
      title: 'Greet',
      description: 'Greets somebody by name. Gives one friendly line back.',
      whenToUse: 'Someone should be greeted.',
      whenNotToUse: 'They said goodbye.',
      examples: ['say hello to Ada', '跟小明打个招呼'],
      category: 'social',
      input: {
        name: { type: 'string', description: 'Who is greeted.' },
        times: { type: 'integer', description: 'How often.', minimum: 1, maximum: 10, default: 1 },
        tone: { type: 'string', enum: ['warm', 'cold'], description: 'How it sounds.', default: 'warm' },
      },
      output: { type: 'string' },
      readOnly: true,
      idempotent: true,
      timeoutMs: 5000,
    },
    ({ name, times, tone }, context) => {
      const line = Array(times).fill(`${context.config.word} ${name}`).join(', ');
      return new Reply(tone === 'warm' ? `${line}!` : line, {
        summary: `greeted ${name}`,
        nextActions: [{ operation: 'golden.context', description: 'see who asked' }],
      });
    },
  )
  .operation(
    'fail',
    {
      description: 'Fails as it is told to. For tests of failures.',
      input: { how: { type: 'string', enum: ['named', 'fault'], description: 'Which failure.' } },
      readOnly: true,
    },
    ({ how }) => {
      if (how === 'fault') throw new TypeError('a fault of ours');
      throw new PluginError('no_such_thing', 'there is no such thing', { hint: 'try another', retryable: true });
    },
  )
  .operation(
    'context',
    { description: 'Tells what a call knows of itself. For tests of contexts.', readOnly: true },
    (_, context) => ({
      call_id: context.callId,
      session_id: context.sessionId ?? null,
      traceparent: context.traceparent ?? null,
      attempt: context.attempt,
      idempotency_key: context.idempotencyKey ?? null,
      caller: context.caller ?? null,
      locale: context.locale ?? null,
      has_time: context.timeLeft > 0 && context.timeLeft <= 30_000,
      cancelled: context.cancelled,
    }),
  )
  .operation(
    'speak',
    {
      description: 'Logs, prints and reports how far it is. For tests of what goes beside an answer.',
      readOnly: true,
    },
    (_, context) => {
      context.warn('one');
      context.debug('unseen');
      process.stdout.write('stray\n');
      context.progress(1, 2, 'half');
      context.partial({ step: 1 });
    },
  )
  .operation(
    'relay',
    {
      description: 'Hands a call on to another plugin. For tests of calls between plugins.',
      input: { city: { type: 'string', description: 'A city, handed on as it is.' } },
    },
    async ({ city }, context) => {
      const { data, summary } = await context.call('other.lookup', { city });
      return new Reply(data, { summary });
    },
  )
  .operation(
    'remove',
    { description: 'Asks before it removes something. For tests of questions.', destructive: true },
    async (_, context) => ((await context.ask('Remove it?', 'boolean', { name: 'sure' })) ? 'removed' : 'kept'),
  )
  .operation(
    'child',
    {
      description: 'Runs a program that reads all of its standard input. For tests of inherited pipes.',
      readOnly: true,
    },
    () => spawnSync('cat', { stdio: ['inherit', 'pipe', 'inherit'], encoding: 'utf8' }).stdout,
  )
  .operation('vars', { description: 'Uses what this host does not offer. For tests of features.' }, (_, context) =>
    context.vars.get('count'),
  )
  .serve(import.meta);
