/** @file Plugins as processes: their streams, their children, their faults, their ends. */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';

import { Child, script } from './child.js';

/** A plugin that has been called; ended when the test is over. */
async function started(context, options) {
  const child = new Child('rough.js', options);
  context.after(() => child.kill());
  return child.start();
}

/** The messages up to the answer to a request. */
async function until(child, id) {
  const messages = [];
  do messages.push(await child.next());
  while (messages.at(-1).id !== id);
  return messages;
}

/** Waits until stderr has some text. */
async function onStderr(child, text) {
  while (!child.stderr.includes(text)) {
    await new Promise((resolve, reject) => {
      child.errors.once('data', resolve).once('end', () => reject(new Error(`no ${text} in: ${child.stderr}`)));
    });
  }
}

test('prints go to stderr, and the console to the log with level and call', async (context) => {
  const child = await started(context);
  child.call(3, 'prints');
  const messages = await until(child, 3);
  const lines = messages.slice(0, -1).map(({ params }) => [params.call_id, params.level, params.message]);
  assert.deepEqual(lines.slice(0, 4), [
    ['c-3', 'info', 'said 1'],
    ['c-3', 'error', 'seen'],
    ['c-3', 'info', 'group'],
    ['c-3', 'debug', '  inside'],
  ]);
  assert.match(lines[4][2], /│ +0 +│ +1 +│/);
  await onStderr(child, 'no line endkept from before\n');
});

test('what is said here is not glued to what was printed', async (context) => {
  const child = await started(context);
  child.call(3, 'half');
  const [log, answer] = await until(child, 3);
  assert.deepEqual([log.params.level, log.params.call_id, answer.error.code], ['error', 'c-3', 2]);
  assert.match(log.params.message, /^half failed: TypeError: [^]*rough\.js/);
  child.send('no message');
  await onStderr(child, 'half a line\nskipped a line');
});

for (const sockets of [false, true]) {
  test(`with ${sockets ? 'sockets' : 'pipes'} a conversation goes on, whatever is printed`, async (context) => {
    const child = await started(context, { sockets });
    for (let id = 3; id < 6; id += 1) {
      child.call(id, 'prints');
      assert.deepEqual((await until(child, id)).at(-1).result, { data: null });
    }
    await onStderr(child, 'no line end');
    child.close();
    assert.equal(await child.exited, 0);
  });
}

test('c143: programs that a tool runs read and write nothing of the protocol', async (context) => {
  const child = await started(context);
  for (const id of [3, 4]) {
    child.call(id, 'child');
    // Sent ahead: a program that inherits the protocol would eat it.
    child.call(id + 10, 'on');
    assert.deepEqual(await child.next(), { jsonrpc: '2.0', id, result: { data: { status: 0, head: '' } } });
    assert.equal((await child.next()).id, id + 10);
  }
  await onStderr(child, 'from a child\nfrom a child\n');
});

test('the end of input ends the process, also while a handler waits or computes', async (context) => {
  for (const operation of [undefined, 'waits', 'computes']) {
    const child = await started(context);
    if (operation) {
      child.call(3, operation);
      assert.equal((await child.next()).method, 'progress');
    }
    const begin = performance.now();
    child.close();
    assert.equal(await child.exited, 0, operation);
    assert.ok(performance.now() - begin < 5000, `${operation} took ${performance.now() - begin} ms`);
  }
});

test('a handler that computes hears of its cancel when it looks, and the rest waits its turn', async (context) => {
  const child = await started(context);
  child.call(3, 'computes');
  assert.equal((await child.next()).method, 'progress');
  child.call(4, 'on');
  child.send({ method: 'cancel', params: { call_id: 'c-3' } });
  child.call(5, 'on');
  const answers = [await child.next(), await child.next(), await child.next()];
  assert.deepEqual(
    answers.map(({ id, error, result }) => [id, error?.code ?? result.data]),
    [
      [3, -32800],
      [4, 'on'],
      [5, 'on'],
    ],
  );
});

test('an exception that nobody caught fails the call it belongs to, and the process lives', async (context) => {
  const child = await started(context);
  child.call(3, 'throws_later');
  const [log, answer] = await until(child, 3);
  assert.deepEqual([log.params.level, log.params.call_id], ['error', 'c-3']);
  assert.match(log.params.message, /^an exception that nobody caught: Error: nobody catches this\n.*rough\.js/);
  assert.deepEqual(answer.error, { code: 2, message: 'throws_later failed unexpectedly: it threw Error' });
  child.call(4, 'on');
  assert.equal((await child.next()).result.data, 'on');
});

test('a question that nobody awaits is no yes: its call fails, and the process lives', async (context) => {
  const child = await started(context);
  child.call(3, 'forgets_to_await');
  const messages = await until(child, 3);
  assert.deepEqual(messages.at(-1).error, {
    code: 2,
    message: 'forgets_to_await failed: it ended without an answer; did you forget `await` before ask(…)?',
  });
  child.call(4, 'on');
  assert.equal((await child.next()).result.data, 'on');
});

test('a rejection that nobody handled is logged, and harms no call', async (context) => {
  const child = await started(context);
  child.call(3, 'rejects_aside');
  const [log, answer] = await until(child, 3);
  assert.match(log.params.message, /^a rejection that nobody handled: Error: nobody handles this\n/);
  assert.equal(answer.result.data, 'unharmed');
});

test("with several lanes each call's prints and faults are its own", async (context) => {
  const child = await started(context, { args: ['--lanes=3'] });
  const names = { 3: 'one', 4: 'throws', 5: 'three' };
  for (const [id, name] of Object.entries(names)) child.call(Number(id), 'tells_apart', { name });
  const messages = [];
  while (messages.filter(({ id }) => id !== undefined).length < 3) messages.push(await child.next());
  const answers = new Map(
    messages.filter(({ id }) => id).map(({ id, result, error }) => [id, result?.data ?? error.message]),
  );
  assert.deepEqual([...answers].sort(), [
    [3, 'one'],
    [4, 'tells_apart failed unexpectedly: it threw Error'],
    [5, 'three'],
  ]);
  const said = messages.filter(({ params }) => params?.level === 'info');
  assert.deepEqual(
    said.map(({ params }) => names[params.call_id.slice(2)] === params.message),
    [true, true, true],
  );
});

test('lines of 16 MiB pass in both directions, and larger answers fail their call', async (context) => {
  const child = await started(context);
  const limit = 16 * 1024 * 1024;
  const around = '{"jsonrpc":"2.0","id":3,"result":{"data":""}}'.length;
  child.call(3, 'large', { size: limit - around - 1 });
  const { data } = (await child.next()).result;
  assert.equal(Buffer.byteLength(data), limit - around - 1);
  child.call(4, 'large', { size: limit });
  assert.equal((await child.next()).error.data.name, 'too_large');
  child.call(5, 'length', { text: 'é'.repeat(8_000_000) });
  assert.equal((await child.next()).result.data, 8_000_000);
});

test('a plugin waits for a host that reads slowly, and loses nothing', async (context) => {
  const child = new Child('rough.js', { reading: false });
  context.after(() => child.kill());
  for (const id of [1, 2, 3]) child.call(id, 'large', { size: 1_000_000 });
  child.call(4, 'on');
  // It has read the calls, and writes: it can do no more until somebody reads.
  child.read();
  for (const id of [1, 2, 3]) assert.equal((await child.next()).result.data.length, 500_000, `call ${id}`);
  assert.equal((await child.next()).id, 4);
});

test('a conversation can be piped in by hand', () => {
  const call = (id, operation) =>
    `{"jsonrpc":"2.0","id":${id},"method":"call","params":{"operation":"${operation}","arguments":{},"context":{"call_id":"${id}"}}}`;
  const input = [call(1, 'on'), call(2, 'rejects_aside'), call(3, 'waits')].join('\n');
  const { stdout, status } = spawnSync(
    'sh',
    ['-c', `printf '%s' '${input}' | "$0" "$1"`, process.execPath, script('rough.js')],
    { encoding: 'utf8' },
  );
  const answers = stdout
    .trim()
    .split('\n')
    .map(JSON.parse)
    .filter(({ id }) => id);
  assert.deepEqual([answers.map(({ id }) => id), status], [[1, 2], 0], 'the last line needs no line end');
});

test('input from a file and output to one work, too', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'plugd-sdk-'));
  const [input, output] = ['in', 'out'].map((name) => path.join(folder, name));
  fs.writeFileSync(input, '{"jsonrpc":"2.0","id":1,"method":"ping"}\n');
  fs.writeFileSync(output, 'before\n');
  const { status } = spawnSync('sh', [
    '-c',
    '"$0" "$1" <"$2" >>"$3"',
    process.execPath,
    script('rough.js'),
    input,
    output,
  ]);
  const wrote = fs.readFileSync(output, 'utf8');
  fs.rmSync(folder, { recursive: true });
  assert.deepEqual([status, wrote], [0, 'before\n{"jsonrpc":"2.0","id":1,"result":{}}\n']);
});

test('a host that no longer reads is the end', async (context) => {
  const child = await started(context, { sockets: true });
  child.process.stdout.destroy();
  child.call(3, 'on');
  assert.equal(await child.exited, 0);
});

/** Runs a plugin to its end. */
const run = (file, ...args) => spawnSync(process.execPath, [script(file), ...args], { encoding: 'utf8', input: '' });

test('by its arguments a plugin says what it is', () => {
  const described = run('rough.js', '--describe');
  assert.deepEqual([described.status, JSON.parse(described.stdout).name], [0, 'rough']);
  assert.deepEqual(run('rough.js', '--version').stdout, 'rough 1.0.0\n');
  const { stdout, status } = run('golden.js', '--help');
  assert.equal(status, 0);
  for (const told of [
    'golden 1.2.3, a plugd plugin',
    '  greet    Greets somebody by name.\n',
    'golden.js greet name=…',
    '[plugins.golden]',
  ]) {
    assert.ok(stdout.includes(told), `${told} in ${stdout}`);
  }
});

test('on a terminal it says what it is, and leaves', (context) => {
  const program = 'import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))';
  const ended = spawnSync('python3', ['-c', program, process.execPath, script('rough.js')], {
    encoding: 'utf8',
    input: '',
  });
  if (ended.error && process.env.PLUGD_TEST_REQUIRE_ALL !== '1')
    return context.skip('python3 is needed for a terminal');
  assert.equal(ended.status, 2, ended.stderr);
  assert.match(ended.stdout, /rough 1\.0\.0, a plugd plugin/);
});

test('a wrong declaration is told whole, and ends it for good', () => {
  const { status, stderr, stdout } = run('wrong.js');
  assert.deepEqual([status, stdout], [125, '']);
  assert.match(
    stderr,
    /^the plugin is declared wrongly:\n {2}"doIt" is not .*did you mean "do_it"\?\n {2}listed: input: .*\n$/,
  );
});

test('a module that is imported does not serve, one that is started by another path does', () => {
  const link = path.join(os.tmpdir(), `plugd-sdk-${process.pid}.js`);
  fs.symlinkSync(script('rough.js'), link);
  const paths = [link, script('rough')];
  const started = paths.map((file) => spawnSync(process.execPath, [file, '--version'], { encoding: 'utf8' }).stdout);
  fs.unlinkSync(link);
  assert.deepEqual(started, ['rough 1.0.0\n', 'rough 1.0.0\n']);
});
