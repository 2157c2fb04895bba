/** @file A plugin that does what handlers should not; `--lanes=N` gives it more lanes. */

import { spawnSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';

import { plugin } from '../src/index.js';

const { log: logOfOld } = console;
const lanes = Number(/\d+/.exec(process.argv.at(-1)) ?? 1);

export default plugin('rough', '1.0.0', { description: 'Does what handlers should not.', concurrency: lanes })
  .operation('prints', {}, () => {
    process.stdout.write('no line end');
    logOfOld('kept from before');
    console.log('said %d', 1);
    console.error(new Error('seen').message);
    console.group('group');
    console.debug('inside');
    console.groupEnd();
    console.table([{ a: 1 }]);
  })
  .operation('half', {}, () => {
    process.stdout.write('half a line');
    return undefined.nothing;
  })
  .operation('child', {}, () => {
    const { status } = spawnSync('cat', { stdio: 'inherit' });
    const { stdout } = spawnSync('head', ['-c', '20'], { stdio: ['inherit', 'pipe', 'inherit'] });
    spawnSync('echo', ['from a child'], { stdio: 'inherit' });
    return { status, head: stdout.toString() };
  })
  .operation('throws_later', {}, () => {
    setImmediate(() => {
      throw new Error('nobody catches this');
    });
    return new Promise(() => {});
  })
  .operation('forgets_to_await', {}, async (_, context) => {
    const sure = context.ask('Remove it?', 'boolean');
    return sure ? 'removed' : 'kept';
  })
  .operation('rejects_aside', {}, async () => {
    void Promise.reject(new Error('nobody handles this'));
    await sleep(1);
    return 'unharmed';
  })
  .operation('tells_apart', { input: { name: { type: 'string' } } }, async ({ name }, context) => {
    context.progress(1);
    await sleep(1);
    console.log(name);
    if (name === 'throws')
      setImmediate(() => {
        throw new Error('of this call only');
      });
    return name === 'throws' ? new Promise(() => {}) : name;
  })
  .operation('waits', {}, (_, context) => {
    context.progress(1);
    return new Promise(() => {});
  })
  .operation('computes', {}, (_, context) => {
    context.progress(1);
    for (;;) context.check();
  })
  .operation('large', { input: { size: { type: 'integer' } } }, ({ size }) => 'é'.repeat(size / 2))
  .operation('length', { input: { text: { type: 'string' } } }, ({ text }) => text.length)
  .operation('on', {}, () => 'on')
  .serve(import.meta);
