/** @file Declarations: the ways to write a schema, options, and what is wrong with them. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Context, DeclarationError, plugin } from '../src/index.js';
import { Host } from '../src/testing.js';

const declared = (options, handler = () => null) =>
  plugin('p', '1.0.0').operation('o', options, handler).manifest().operations[0];

test('a map of properties is an object whose parameters are required unless they say otherwise', () => {
  const { input_schema } = declared({
    input: {
      type: { type: 'string' },
      times: { type: 'integer', default: 0 },
      note: { type: 'string', optional: true },
      any: {},
    },
  });
  assert.deepEqual(input_schema, {
    type: 'object',
    properties: { type: { type: 'string' }, times: { type: 'integer', default: 0 }, note: { type: 'string' }, any: {} },
    required: ['type', 'any'],
  });
});

test('a JSON Schema is taken as it is, and nothing means no parameters', () => {
  const schemas = [
    { type: 'object', additionalProperties: true },
    { $schema: 'http://json-schema.org/draft-07/schema#', type: 'object', properties: {}, title: 'Kept' },
  ];
  for (const input of schemas) assert.deepEqual(declared({ input }).input_schema, input);
  assert.deepEqual(declared({ input: { anyOf: [{ required: ['a'] }] } }).input_schema, {
    type: 'object',
    anyOf: [{ required: ['a'] }],
  });
  assert.deepEqual(declared({}).input_schema, { type: 'object', properties: {}, additionalProperties: false });
});

test('every option has its place in the manifest', () => {
  const options = {
    title: 'T',
    description: 'D',
    whenToUse: 'W',
    whenNotToUse: 'N',
    examples: ['e'],
    category: 'c',
    audience: 'plugins',
    readOnly: false,
    destructive: true,
    idempotent: true,
    openWorld: false,
    timeoutMs: 1,
    stallTimeoutMs: 2,
    longRunning: true,
    confirm: 'never',
    scope: 's',
    cacheTtl: 0,
    resultLimit: 300,
    output: { city: { type: 'string' } },
  };
  assert.deepEqual(declared(options), {
    name: 'o',
    title: 'T',
    description: 'D',
    when_to_use: 'W',
    when_not_to_use: 'N',
    examples: ['e'],
    category: 'c',
    audience: 'plugins',
    input_schema: { type: 'object', properties: {}, additionalProperties: false },
    output_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    effects: { read_only: false, destructive: true, idempotent: true, open_world: false },
    timeout_ms: 1,
    stall_timeout_ms: 2,
    long_running: true,
    confirm: 'never',
    scope: 's',
    cache_ttl: 0,
    result_limit: 300,
  });
  const { features, requires, priority } = plugin('p', '1', {
    concurrency: 4,
    stopsWhenCancelled: true,
    priority: -1,
    requires: { a: '>=1.0, <3', b: { optional: true } },
  })
    .reload(() => {})
    .manifest();
  assert.deepEqual(features, { ping: true, concurrency: 4, cancel: true, reload: true });
  assert.deepEqual(
    { requires, priority },
    { requires: { a: { version: '>=1.0, <3' }, b: { version: '*', optional: true } }, priority: -1 },
  );
});

test('every fault of a declaration is told at once', () => {
  const wrong = plugin('my plugin', '', {
    requires: { weather: 'soon' },
    concurrency: 500,
    config: 'word',
    descripton: '',
  })
    .operation('doIt', { readonly: true, timeoutMs: '5', input_schema: {} }, () => null)
    .operation('same', {}, () => null)
    .operation('same', {}, 'no function')
    .operation('listed', { input: { type: 'array' }, output: null }, () => null)
    .operation('flat', { input: { name: 'string' } }, () => null)
    .init('no function');
  const told = [
    '"my plugin" is not a plugin name: expected 1 to 64 letters, digits, _ or -, beginning with a letter or digit',
    'the version of my plugin is to be a text such as "1.0.0"',
    'my plugin: concurrency is to be 1 to 256',
    'my plugin: there is no option "descripton"; did you mean "description"?',
    'weather is required in "soon", which is no range such as ">=1.0"',
    'config: expected a map of properties, a JSON Schema or a zod schema',
    '"doIt" is not an operation name: expected 1 to 64 of a-z, 0-9 and _; did you mean "do_it"?',
    'doIt: there is no option "readonly"; did you mean "readOnly"?',
    'doIt: timeoutMs is to be a whole number',
    'doIt: there is no option "input_schema"; did you mean "input"?',
    'same is declared twice',
    'same: expected a function behind the options',
    'listed: input: the input of listed is no object: name each parameter under "properties"',
    'listed: output: expected a map of properties, a JSON Schema or a zod schema',
    "flat: input: name: expected a JSON Schema such as {type: 'string'}, found string",
    'init: expected a function',
  ];
  assert.throws(
    () => wrong.manifest(),
    (error) => {
      assert.ok(error instanceof DeclarationError);
      assert.deepEqual(error.faults, told);
      return true;
    },
  );
});

test('what is left out has its default when the handler runs, and never a shared one', async () => {
  const host = new Host(
    plugin('p', '1.0.0', { config: { words: { type: 'array', default: ['hi'] } } }).operation(
      'o',
      { input: { list: { type: 'array', default: [1] }, none: { type: 'string', optional: true } } },
      ({ list, ...rest }, context) => {
        list.push(2);
        return { list, rest, words: context.config.words };
      },
    ),
  );
  for (let call = 0; call < 2; call += 1) {
    assert.deepEqual((await host.call('o')).data, { list: [1, 2], rest: {}, words: ['hi'] });
  }
});

test('a handler is a plain function', async () => {
  const hello = ({ name }, context) => `${context.config.word} ${name}`;
  const context = Context.forTest({ config: { word: 'hi' }, caller: 'ada', attempt: 2 });
  assert.equal(hello({ name: 'Ada' }, context), 'hi Ada');
  assert.deepEqual([context.callId, context.caller, context.attempt, context.cancelled], ['test', 'ada', 2, false]);
  context.info('lost');
  context.progress(1);
  await assert.rejects(context.call('a.b'), { name: 'no_host' });
  await assert.rejects(context.ask('Sure?'), { name: 'no_host' });
});
