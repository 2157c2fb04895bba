/** @file Schemas of zod, where it is installed: `npm install` in this folder. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { plugin } from '../src/index.js';
import { Host } from '../src/testing.js';

const z = await import('zod').catch(() => undefined);
if (z === undefined) {
  const told = 'zod is not installed, so its schemas are untested: npm install in plugin-sdk/node/test';
  if (process.env.PLUGD_TEST_REQUIRE_ALL === '1') throw new Error(`${told}; PLUGD_TEST_REQUIRE_ALL=1 allows no skip`);
  console.error(`SKIPPED: ${told}`);
}
const options = { skip: z === undefined };

test('a zod schema says what the manifest says, and its parser reads the arguments', options, async () => {
  const greet = plugin('greet', '1.0.0', { config: z.object({ word: z.string().trim().default('hi') }) }).operation(
    'hello',
    {
      input: z.object({
        name: z.string().min(1).describe('Who is greeted.'),
        times: z.int().min(1).default(1),
        at: z.iso.date().optional(),
      }),
      output: z.object({ line: z.string(), count: z.int() }),
    },
    ({ name, times }, context) => ({ line: `${context.config.word} ${name}`, count: times }),
  );
  const { config_schema, operations } = greet.manifest();
  assert.deepEqual(config_schema, { type: 'object', properties: { word: { default: 'hi', type: 'string' } } });
  const { input_schema, output_schema } = operations[0];
  assert.deepEqual(input_schema.required, ['name']);
  assert.deepEqual(input_schema.properties.name, { type: 'string', minLength: 1, description: 'Who is greeted.' });
  assert.deepEqual(
    input_schema.properties.times,
    { default: 1, type: 'integer', minimum: 1 },
    'no bound that nobody wrote',
  );
  assert.equal('$schema' in input_schema, false);
  assert.deepEqual(output_schema.required, ['line', 'count']);

  const host = new Host(greet, { config: { word: ' hey ' } });
  assert.deepEqual((await host.call('hello', { name: 'Ada' })).data, { line: 'hey Ada', count: 1 });
  await assert.rejects(new Host(greet, { config: { word: 5 } }).start(), { name: 'invalid_config', code: -32602 });
});

test('no parameters are declared as none', options, () => {
  const declared = (input) => plugin('p', '1.0.0').operation('o', { input }, () => 1).manifest().operations[0];
  assert.equal(declared(z.object({})).input_schema.additionalProperties, false);
  assert.notEqual(declared(z.looseObject({})).input_schema.additionalProperties, false);
});

test('arguments that do not fit are refused in the words of zod, and never reach the handler', options, async () => {
  const host = new Host(
    plugin('p', '1.0.0').operation('o', { input: z.object({ a: z.object({ b: z.string() }), n: z.int() }) }, () =>
      assert.fail('it ran'),
    ),
  );
  const { error } = await host.call('o', { a: { b: 5 }, n: 1.5 });
  assert.deepEqual([error.code, error.name], [-32602, 'invalid_arguments']);
  assert.match(error.message, /^the input of o does not fit: a\.b: .*expected string.*; n: /);
});

test('an asynchronous check is waited for', options, async () => {
  const input = z.object({ n: z.int().refine(async (n) => n > 0, 'not above 0') });
  const host = new Host(plugin('p', '1.0.0').operation('o', { input }, ({ n }) => n));
  assert.equal((await host.call('o', { n: 5 })).data, 5);
  assert.match((await host.call('o', { n: -5 })).error.message, /n: not above 0/);
});

test('an answer is read by zod as well', options, async () => {
  const asks = plugin('p', '1.0.0').operation('o', {}, (_, context) =>
    context.ask(
      'When?',
      z.string().transform((text) => text.length),
    ),
  );
  assert.equal((await new Host(asks, { answers: { answer: 'noon' } }).call('o')).data, 4);
  const { error } = await new Host(asks, { answers: { answer: 12 } }).call('o');
  assert.equal(error.name, 'unexpected_reply');
});

test('what zod cannot say as a JSON Schema is a fault of the declaration', options, () => {
  const wrong = plugin('p', '1.0.0').operation('o', { input: z.object({ at: z.date() }) }, () => null);
  assert.throws(() => wrong.manifest(), /o: input: .*Date cannot be represented/);
});

test('older zods are told what to do', () => {
  const zod3 = { _def: { typeName: 'ZodObject' }, '~standard': { vendor: 'zod', validate() {} } };
  const zod40 = { _zod: {}, '~standard': { vendor: 'zod', validate() {} } };
  for (const [input, told] of [
    [zod3, /zod 3 cannot/],
    [zod40, /upgrade zod \(zod to 4\.2/],
  ]) {
    assert.throws(
      () =>
        plugin('p', '1.0.0')
          .operation('o', { input }, () => null)
          .manifest(),
      told,
    );
  }
});
