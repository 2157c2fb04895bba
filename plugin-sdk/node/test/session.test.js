/** @file The conversation in memory: failures, cancellation, lanes, lives, questions, features. */

import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { Context, InitContext, plugin, PluginError, Reply } from '../src/index.js';
import { running } from '../src/plugin.js';
import { Session } from '../src/session.js';
import { Host } from '../src/testing.js';
import { Lines } from './lines.js';

const FEATURES = ['log', 'progress', 'partial', 'host_calls', 'host_asks'];

/** A plugin with one operation `o`. */
const one = (handler, options = {}) => plugin('p', '1.0.0', options).operation('o', {}, handler);

/** Something that a handler waits for until the test lets it. */
function gate() {
  let open;
  const opened = new Promise((resolve) => (open = resolve));
  return { open, opened };
}

/** A plugin whose messages a test reads one by one. */
class Wire {
  lines = new Lines();
  left = false;

  constructor(declared) {
    this.session = new Session(running(declared), {
      write: (line) => this.lines.push(line),
      leave: () => (this.left = true),
    });
  }

  send(message) {
    this.session.receive(
      Buffer.from(`${typeof message === 'string' ? message : JSON.stringify({ jsonrpc: '2.0', ...message })}\n`),
    );
  }

  async next() {
    return JSON.parse(await this.lines.next());
  }

  async ask(id, method, params = {}) {
    this.send({ id, method, params });
    return this.next();
  }

  async start(features = FEATURES, logLevel = 'info') {
    await this.ask(1, 'describe', { protocol: { versions: [1], features } });
    await this.ask(2, 'init', { config: {}, log_level: logLevel });
    return this;
  }

  call(id, operation = 'o', context = {}) {
    this.send({
      id,
      method: 'call',
      params: { operation, arguments: {}, context: { call_id: `c-${id}`, deadline_ms: 30_000, ...context } },
    });
  }
}

async function failureOf(handler) {
  const complained = mock.method(process.stderr, 'write', () => true);
  const reply = await new Host(one(handler)).call('o');
  complained.mock.restore();
  const { error, logs } = reply;
  return { error, logs, reply, stderr: complained.mock.calls.map(({ arguments: [text] }) => text) };
}

test("a failure in the plugin's own words reaches the caller whole, and nothing goes to stderr", async () => {
  const thrown = new PluginError('no_ticket', 'there is no ticket', { hint: 'look it up', retryable: true });
  const { error, logs, stderr } = await failureOf(() => Promise.reject(thrown));
  assert.deepEqual(
    [error.name, error.message, error.hint, error.retryable, error.code],
    ['no_ticket', 'there is no ticket', 'look it up', true, 1],
  );
  assert.deepEqual([logs, stderr], [[], []]);
});

test('a fault fails its call with its class, and its text and stack are in the log at error, with the call', async () => {
  const thrower = (thrown) =>
    failureOf(() => {
      throw thrown;
    });
  const { error, logs, reply, stderr } = await thrower(new RangeError('the token is\n   s3cr3t'));
  assert.deepEqual(
    [error.code, error.message, error.hint],
    [2, 'o failed unexpectedly: it threw RangeError', undefined],
  );
  assert.deepEqual([logs.length, logs[0].level, stderr], [1, 'error', []]);
  assert.match(logs[0].message, /^o failed: RangeError: the token is\n   s3cr3t\n[^]*session\.test\.js/);
  assert.throws(() => reply.data, { cause: logs[0].message });
  const named = Object.assign(new Error('s3cr3t'), { name: 'the name is s3cr3t' });
  for (const [thrown, told] of [
    ['s3cr3t', 'string'],
    [undefined, 'undefined'],
    [null, 'null'],
    [named, 'Error'],
  ]) {
    assert.equal((await thrower(thrown)).error.message, `o failed unexpectedly: it threw ${told}`);
  }
});

test('a long stack is told in parts that a host shows whole', async () => {
  for (const size of [20, 2000]) {
    const { logs } = await failureOf(() => {
      throw new Error('a line 行 '.repeat(50).concat('\n').repeat(size));
    });
    assert.ok(logs.length >= 2 && logs.length <= 10, `${logs.length}`);
    assert.match(logs[0].message, /^o failed: Error: a line/);
    for (const { level, message } of logs) assert.ok(level === 'error' && Buffer.byteLength(message) < 8192);
  }
});

test('an error with a bad name says what its author wrote, and the log what is wrong and where', async () => {
  const { error, logs } = await failureOf(() => {
    throw new PluginError('NotThere', 'it is not there');
  });
  const told = 'it is not there; a fault in the plugin: "NotThere" is not a failure\'s name';
  assert.deepEqual([error.code, error.message], [2, told]);
  assert.match(logs[0].message, /expected 1 to 64 of a-z, 0-9 and _; did you mean "not_there"\?\n[^]*session\.test\.js/);
});

test('progress in words says how it is written', async () => {
  for (const [words, told] of [
    [['half'], 'done is of the type string'],
    [[0.5, 'half'], 'total is of the type string'],
    [[], 'done is of the type undefined'],
    [[null], 'done is null'],
    [[NaN], 'done is NaN'],
    [[1, Infinity], 'total is Infinity'],
    [[1, 2, 3], 'the message is of the type number'],
  ]) {
    const { error, logs } = await failureOf((_, context) => {
      context.progress(1n, null, 'fine');
      context.progress(...words);
    });
    assert.match(error.message, /^o failed: progress takes two numbers and a text, such as progress\(3, 10, /);
    assert.ok(error.message.endsWith(`: ${told}`), error.message);
    assert.match(logs[0].message, /session\.test\.js/);
  }
  assert.throws(() => Context.forTest().progress('half'), TypeError);
});

test("a hook's fault is told in its own words: operators read them", async () => {
  const complained = mock.method(process.stderr, 'write', () => true);
  const host = new Host(
    one(() => 1).init(() => {
      throw new RangeError('there is no\n  database');
    }),
  );
  await assert.rejects(host.start(), { message: 'there is no database', code: 2 });
  complained.mock.restore();
  assert.match(complained.mock.calls[0].arguments[0], /^init failed: RangeError: there is no\n/);
});

test("a failure's name that is none is refused where it is given, and so is a misspelt option", () => {
  for (const [name, told] of [
    ['notThere', '"notThere" is not a failure\'s name: expected 1 to 64 of a-z, 0-9 and _; did you mean "not_there"?'],
    ['Not There', '"Not There" is not a failure\'s name: expected 1 to 64 of a-z, 0-9 and _; did you mean "not_there"?'],
    ['', '"" is not a failure\'s name: expected 1 to 64 of a-z, 0-9 and _'],
    ['没有', '"没有" is not a failure\'s name: expected 1 to 64 of a-z, 0-9 and _'],
    [404, '"404" is not a failure\'s name: expected 1 to 64 of a-z, 0-9 and _'],
  ]) {
    assert.throws(() => new PluginError(name, 'it is not there'), { name: 'TypeError', message: told });
  }
  const misspelt = (make, message) => assert.throws(make, { name: 'TypeError', message });
  misspelt(
    () => new PluginError('a', 'b', { retriable: true }),
    'a PluginError: there is no option "retriable"; did you mean "retryable"?',
  );
  misspelt(() => new Reply(1, { sumary: 'x' }), 'a Reply: there is no option "sumary"; did you mean "summary"?');
  misspelt(
    () => Context.forTest({ call_id: 'x' }),
    'Context.forTest: there is no option "call_id"; did you mean "callId"?',
  );
  misspelt(() => new Host(one(() => 1), { answer: {} }), 'a Host: there is no option "answer"; did you mean "answers"?');
});

test('a forgotten await is no yes', async () => {
  const removed = [];
  const answers = { answer: false };
  const remove = async (handler) => {
    const complained = mock.method(process.stderr, 'write', () => true);
    const host = new Host(one(handler), { answers, calls: { 'a.b': (args) => args } });
    const { error } = await host.call('o');
    complained.mock.restore();
    return [error.code, error.message];
  };
  const told = (what, how = ': it ended without an answer') => [
    2,
    `o failed${how}; did you forget \`await\` before ${what}(…)?`,
  ];
  const asks = (_, context) => {
    if (context.ask('Remove it?', 'boolean')) removed.push('it');
    return 'removed';
  };
  assert.deepEqual(await remove(asks), told('ask'));
  // Also where the answer has come before the handler ends.
  const late = async (_, context) => {
    const sure = context.ask('Remove it?', 'boolean');
    await sleep(20);
    return sure ? 'removed' : 'kept';
  };
  assert.deepEqual(await remove(late), told('ask'));
  assert.deepEqual(await remove(async (_, context) => void context.call('a.b')), told('call'));
  assert.deepEqual(await remove(async (_, context) => context.askSecret('PIN?') === '1'), told('askSecret'));
  assert.deepEqual(await remove(async (_, context) => !!context.askMany({ a: 'A?' })), told('askMany'));
  assert.deepEqual(await remove((_, context) => (context.waitCancelled(5) ? 'gone' : '')), told('waitCancelled'));
  assert.deepEqual(await remove((_, context) => void context.vars.set('n', 1)), told('vars.set'));
  const early = (part) => `: it wants ${part} of an answer that has not come`;
  assert.deepEqual(await remove((_, context) => context.call('a.b').data.temp), told('call', early('data')));
  assert.deepEqual(await remove(async (_, context) => context.call('a.b').summary), told('call', early('summary')));
  assert.deepEqual(await remove((_, context) => `${context.ask('?')}`), told('ask', early('the value')));
  const type = ' unexpectedly: it threw TypeError';
  assert.deepEqual(await remove((_, context) => context.ask('?').trim()), told('ask', type));
});

test('what is awaited by another way is awaited', async () => {
  const handler = async (_, context) => {
    const [one, two] = await Promise.all([context.call('a.b', { n: 1 }), context.call('a.b', { n: 2 })]);
    const raced = await Promise.race([context.call('a.b', { n: 3 }), context.call('slow.b')]);
    const handed = await Promise.resolve(context.ask('?')).then((answer) => answer);
    context.ask('?').catch(() => {});
    return [one.data.n, two.data.n, raced.data.n, handed];
  };
  const calls = { 'a.b': (args) => args, 'slow.b': () => new Promise(() => {}) };
  const host = new Host(one(handler), { answers: { answer: 'yes' }, calls });
  assert.deepEqual((await host.call('o')).data, [1, 2, 3, 'yes']);
  const straight = new Host(one((_, context) => context.ask('?')), { answers: { answer: 'yes' } });
  assert.equal((await straight.call('o')).data, 'yes');
});

test('keys that nobody declared are refused as a host does', async () => {
  const handler = () => 'ran';
  const it = plugin('p', '1.0.0')
    .operation('none', {}, handler)
    .operation('some', { input: { city: { type: 'string', default: 'x' } } }, handler)
    .operation('open', { input: { type: 'object' } }, handler);
  const host = new Host(it);
  const failed = async (...call) => {
    const { error } = await host.call(...call);
    return [error.code, error.name, error.message];
  };
  assert.deepEqual(await failed('none', { x: 1 }), [
    2001,
    'invalid_arguments',
    'the arguments do not fit none: x: expected no arguments',
  ]);
  assert.deepEqual(await failed('some', { ctiy: 1 }), [
    2001,
    'invalid_arguments',
    'the arguments do not fit some: ctiy: expected only the keys city; did you mean "city"?',
  ]);
  assert.equal((await host.call('open', { x: 1 })).data, 'ran');
});

test('a result that is no JSON is a fault that says what and where', async () => {
  const { error } = await failureOf(() => ({ list: [{ n: NaN }] }));
  assert.deepEqual([error.code, error.message], [2, 'data.list[0].n is not JSON: it is NaN']);
  const later = async () => 1;
  assert.equal(
    (await failureOf(() => ({ a: later() }))).error.message,
    'data.a is not JSON: it is a Promise: is an await missing?',
  );
});

test('a result or a question that is too large for one message fails the call, and the plugin goes on', async () => {
  const large = 'é'.repeat(9 * 1024 * 1024);
  const host = new Host(
    plugin('p', '1.0.0')
      .operation('gives', {}, () => large)
      .operation('calls', {}, (_, context) => context.call('a.b', { large })),
  );
  for (const operation of ['gives', 'calls']) {
    const { error } = await host.call(operation);
    assert.equal(error.name, 'too_large');
    assert.match(error.message, /is 188\d{5} bytes long, and a message at most 16777216/);
  }
});

test('data may be anything, nothing and a promise included', async () => {
  for (const [given, data] of [
    [undefined, null],
    [null, null],
    [0, 0],
    [Promise.resolve('x'), 'x'],
    [new Reply(undefined), null],
  ]) {
    assert.equal((await new Host(one(() => given)).call('o')).data, data);
  }
  const reply = await new Host(
    one(() => new Reply(7n, { summary: 'seven', nextActions: [{ operation: 'p.o' }] })),
  ).call('o');
  assert.deepEqual([reply.data, reply.summary, reply.nextActions], [7, 'seven', [{ operation: 'p.o' }]]);
});

test('the failed call of another plugin is handed on, also where it was wrapped', async () => {
  const cause = { operation: 'a.b', call_id: 'c', error: { code: 6003 } };
  const wire = await new Wire(
    one(async (_, context) => {
      try {
        await context.call('a.b');
      } catch (error) {
        throw new PluginError('no_weather', 'the weather is unknown', {
          cause: new Error('wrapped', { cause: error }),
        });
      }
    }),
  ).start();
  wire.call(3);
  const request = await wire.next();
  assert.deepEqual(request.params, { call_id: 'c-3', operation: 'a.b', arguments: {} });
  wire.send({ id: request.id, error: { code: 3, message: 'down', data: { name: 'stopped', cause } } });
  assert.deepEqual((await wire.next()).error, {
    code: 1,
    message: 'the weather is unknown',
    data: { name: 'no_weather', cause },
  });
});

test('a cancelled call ends wherever it waits', async () => {
  const waits = {
    for_cancel: async (_, context) => assert.equal(await context.waitCancelled(60_000), true) ?? context.check(),
    for_time: (_, context) => sleep(60_000, undefined, { signal: context.signal }),
    for_an_answer: (_, context) => context.ask('Sure?'),
    for_a_plugin: (_, context) => context.call('a.b'),
  };
  for (const [name, handler] of Object.entries(waits)) {
    const never = new Promise(() => {});
    const host = new Host(
      one((args, context) => {
        context.progress(1);
        return handler(args, context);
      }),
      { calls: { 'a.b': () => never }, answers: () => never },
    );
    const call = await host.begin('o');
    await call.reached(1);
    call.cancel();
    const { error } = await call.ended();
    assert.ok(error?.isCancelled, `${name}: ${error}`);
  }
});

test('waiting for a cancel that does not come ends, too, and an abort of another kind is a fault', async () => {
  const host = new Host(
    one(async (_, context) => [await context.waitCancelled(1), context.cancelled, context.signal.aborted]),
  );
  assert.deepEqual((await host.call('o')).data, [false, false, false]);
  const { error } = await failureOf(() => sleep(60_000, undefined, { signal: AbortSignal.abort() }));
  assert.equal(error.code, 2);
});

test('what a cancelled call still gives is its answer', async () => {
  const host = new Host(
    one(async (_, context) => (context.progress(1), await context.waitCancelled(60_000), 'all the same')),
  );
  const call = await host.begin('o');
  await call.reached(1);
  call.cancel();
  assert.equal((await call.ended()).data, 'all the same');
});

test('one lane runs one call at a time, more lanes run as many', async () => {
  for (const [concurrency, order] of [
    [1, ['1 in', '1 out', '2 in', '2 out']],
    [2, ['1 in', '2 in', '1 out', '2 out']],
  ]) {
    const seen = [];
    const host = new Host(
      plugin('p', '1.0.0', { concurrency }).operation('o', { input: { n: { type: 'integer' } } }, async ({ n }) => {
        seen.push(`${n} in`);
        await sleep(1);
        seen.push(`${n} out`);
      }),
    );
    await host.start();
    await Promise.all([host.call('o', { n: 1 }), host.call('o', { n: 2 })]);
    assert.deepEqual(seen, order);
  }
});

test('a call that is cancelled before it has a lane never runs', async () => {
  const first = gate();
  let runs = 0;
  const wire = await new Wire(one(() => ((runs += 1), first.opened))).start();
  wire.call(3);
  wire.call(4);
  wire.send({ method: 'cancel', params: { call_id: 'c-4' } });
  first.open('done');
  assert.deepEqual([(await wire.next()).result, (await wire.next()).error.code, runs], [{ data: 'done' }, -32800, 1]);
});

test('more calls than can wait are refused as retryable', async () => {
  const first = gate();
  const wire = await new Wire(one(() => first.opened)).start();
  for (let id = 3; id < 3 + 1 + 1024 + 1; id += 1) wire.call(id);
  const { id, error } = await wire.next();
  assert.deepEqual([id, error.data], [3 + 1 + 1024, { name: 'overloaded', retryable: true }]);
  first.open();
});

test('calls wait for init, and fail where there was none', async () => {
  const opening = gate();
  const declared = one((_, context) => context.state).init(() => opening.opened);
  const wire = new Wire(declared);
  wire.call(1);
  assert.equal((await wire.next()).error.data.name, 'not_initialised');
  wire.send({ id: 2, method: 'init', params: {} });
  wire.call(3);
  opening.open('state');
  assert.deepEqual(
    [(await wire.next()).id, await wire.next()],
    [2, { jsonrpc: '2.0', id: 3, result: { data: 'state' } }],
  );
});

test('an error of init is the answer to it, and a fault there is one, too', async () => {
  const fails = (thrown) => new Host(one(() => null).init(() => Promise.reject(thrown))).start();
  await assert.rejects(fails(new PluginError('bad_word', 'the word is bad')), {
    name: 'bad_word',
    message: 'the word is bad',
    code: 1,
  });
  mock.method(process.stderr, 'write', () => true);
  await assert.rejects(fails(new TypeError('oops')), { message: 'oops', code: 2 });
  mock.restoreAll();
});

test('reload takes a configuration up whole or not at all', async () => {
  const declared = plugin('p', '1.0.0', { config: { word: { type: 'string', default: 'a' } } })
    .init(({ word }) => ({ word }))
    .reload(({ word }, context) => {
      assert.equal(typeof context.state.word, 'string');
      if (word === 'bad') throw new PluginError('bad_word', 'the word is bad');
      return word === 'kept' ? undefined : { word };
    })
    .operation('o', {}, (_, { config, state }) => [config.word, state.word]);
  const host = new Host(declared);
  assert.deepEqual((await host.call('o')).data, ['a', 'a']);
  await host.reload({ word: 'b' });
  assert.deepEqual((await host.call('o')).data, ['b', 'b']);
  await assert.rejects(host.reload({ word: 'bad' }), { name: 'bad_word' });
  assert.deepEqual((await host.call('o')).data, ['b', 'b']);
  await host.reload({ word: 'kept' });
  assert.deepEqual((await host.call('o')).data, ['kept', 'b']);
});

test('a plugin that makes nothing of its configuration takes up another one without a hook', async () => {
  const config = { word: { type: 'string', default: 'a' } };
  const declared = plugin('p', '1.0.0', { config }).operation('o', {}, (_, context) => context.config.word);
  const host = new Host(declared);
  assert.deepEqual([declared.manifest().features.reload, (await host.call('o')).data], [true, 'a']);
  await host.reload({ word: 'b' });
  assert.equal((await host.call('o')).data, 'b');
  assert.equal(
    plugin('p', '1.0.0', { config })
      .init(() => {})
      .manifest().features.reload,
    undefined,
  );
});

test('shutdown waits for calls, releases, answers and leaves', async () => {
  const call = gate();
  const seen = [];
  const wire = await new Wire(
    one(async () => seen.push(await call.opened))
      .init(() => 'state')
      .shutdown((context) => seen.push(`released ${context.state}`)),
  ).start();
  wire.call(3);
  wire.send({ id: 4, method: 'shutdown', params: { reason: 'stop', grace_ms: 60_000 } });
  assert.equal(wire.left, false);
  call.open('called');
  assert.deepEqual([(await wire.next()).id, (await wire.next()).id, seen], [3, 4, ['called', 'released state']]);
  await sleep(1);
  assert.equal(wire.left, true);
  wire.call(5);
  assert.deepEqual((await wire.next()).error.data, { name: 'shutting_down', retryable: true });
});

test("log lines below the host's level are not sent, those of a call carry its id and its trace", async () => {
  const wire = await new Wire(
    one((_, context) => {
      context.debug('unseen');
      context.warn('%s of %d', 'half', 2, { a: 1 });
      context.log('error', new Error('an error').message);
    }),
  ).start(FEATURES, 'warn');
  wire.call(3, 'o', { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' });
  const about = { call_id: 'c-3', trace_id: '4bf92f3577b34da6a3ce929d0e0e4736' };
  assert.deepEqual((await wire.next()).params, { level: 'warn', message: 'half of 2 { a: 1 }', ...about });
  assert.deepEqual((await wire.next()).params, { level: 'error', message: 'an error', ...about });
  assert.deepEqual((await wire.next()).result, { data: null });
});

test('what a host does not offer is not sent, and refused with a name', async () => {
  const refused = {
    call: (context) => context.call('a.b'),
    ask: (context) => context.ask('Sure?'),
    get: (context) => context.vars.get('a'),
    emit: (context) => context.emit('done'),
  };
  for (const [name, use] of Object.entries(refused)) {
    const wire = await new Wire(
      one((_, context) => (context.info('unsent'), context.progress(1), context.partial(1), use(context))),
    ).start([]);
    wire.call(3);
    const { error } = await wire.next();
    assert.equal(error.data.name, 'not_offered', name);
    assert.match(error.data.hint, /^do without/);
  }
});

test('session variables and events go over the wire where they are offered', async () => {
  const uses = [
    [({ vars }) => vars.get('n'), 'host/vars', { get: ['n'] }, { vars: { n: 5 } }, 5],
    [({ vars }) => vars.set('n', 6), 'host/vars', { set: { n: 6 } }, {}, null],
    [
      ({ vars }) => vars.compareAndSet('n', 6, 7),
      'host/vars',
      { compare_and_set: { name: 'n', expected: 6, value: 7 } },
      { swapped: true },
      true,
    ],
    [(context) => context.emit('done', [1]), 'host/emit', { event: 'done', data: [1] }, {}, null],
  ];
  for (const [use, method, params, result, data] of uses) {
    const wire = await new Wire(one((_, context) => use(context))).start(['host_vars', 'host_emit']);
    wire.call(3);
    const request = await wire.next();
    assert.deepEqual([request.method, request.params], [method, { call_id: 'c-3', ...params }]);
    wire.send({ id: request.id, result });
    assert.deepEqual((await wire.next()).result, { data });
  }
});

test('questions and answers', async () => {
  const wire = await new Wire(
    one((_, context) =>
      context.askMany({
        who: 'Who?',
        key: { prompt: 'Key?', secret: true },
        days: { prompt: 'Days?', schema: 'integer' },
      }),
    ),
  ).start();
  wire.call(3);
  const { id, params } = await wire.next();
  assert.deepEqual(params.questions, [
    { name: 'who', prompt: 'Who?' },
    { name: 'key', prompt: 'Key?', sensitive: true },
    { name: 'days', schema: { type: 'integer' }, prompt: 'Days?' },
  ]);
  const answers = { who: 'Ada', key: 'k', days: 3 };
  wire.send({ id, result: { answers } });
  assert.deepEqual((await wire.next()).result.data, answers);

  const secret = one((_, context) => context.askSecret('Key?', { name: 'key' }));
  assert.equal((await new Host(secret, { answers: { key: 'opensesame' } }).call('o')).data, 'opensesame');
  assert.deepEqual((await new Host(secret).call('o')).error.name, 'nobody_to_ask');
  assert.deepEqual((await new Host(secret, { answers: {} }).call('o')).error.name, 'declined');
});

test('the clock stands still while people are asked', async () => {
  let now = 1000;
  mock.method(performance, 'now', () => now);
  const asked = gate();
  const wire = await new Wire(
    one(async (_, context) => {
      now += 100;
      const before = context.timeLeft;
      const question = context.ask('Sure?');
      asked.open(context);
      await question;
      now += 1;
      return [before, context.timeLeft];
    }),
  ).start();
  wire.call(3, 'o', { deadline_ms: 1000 });
  const context = await asked.opened;
  const { id } = await wire.next();
  now += 50_000;
  assert.equal(context.timeLeft, 900);
  wire.send({ id, result: { answers: { answer: 'yes' } } });
  assert.deepEqual((await wire.next()).result.data, [900, 899]);
  now += 900;
  assert.equal(context.timeLeft, 0);
  assert.ok(context.deadline.getTime() <= Date.now());
  mock.restoreAll();
});

test('the trace, the session and the rest of a call are told', async () => {
  const about = {
    sessionId: 's',
    traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
    idempotencyKey: 'k',
    locale: 'zh-CN',
    attempt: 2,
  };
  const host = new Host(
    one((_, { sessionId, traceId, idempotencyKey, locale, attempt }) => [
      sessionId,
      traceId,
      idempotencyKey,
      locale,
      attempt,
    ]),
  );
  assert.deepEqual((await host.call('o', {}, about)).data, ['s', '4bf92f3577b34da6a3ce929d0e0e4736', 'k', 'zh-CN', 2]);
});

test('a host of another version is told which side is too old', async () => {
  const answers = { 2: /upgrade the plugin$/, 0: /upgrade plugd$/ };
  for (const [version, advice] of Object.entries(answers)) {
    const { error } = await new Wire(one(() => null)).ask(1, 'describe', { protocol: { versions: [Number(version)] } });
    assert.equal(error.code, -32602);
    assert.match(error.message, advice);
  }
  assert.equal(
    (await new Wire(one(() => null)).ask(1, 'describe', { protocol: { versions: [1, 9] } })).result.protocol,
    1,
  );
});

test('messages of the wrong form are refused or passed over, and the conversation goes on', async () => {
  const complaints = mock.method(process.stderr, 'write', () => true);
  const wire = await new Wire(one(() => 'on')).start();
  for (const line of [
    '',
    '  \r',
    '{"jsonrpc"',
    'null',
    '5',
    '[]',
    '{}',
    '{"method":"cancel"}',
    '{"id":99,"result":1}',
    '{"id":null,"error":{}}',
  ])
    wire.send(line);
  assert.equal(complaints.mock.callCount(), 1, 'one line is no JSON');
  const codes = [];
  for (const params of [
    undefined,
    null,
    5,
    { operation: 'o' },
    { operation: 'o', context: { call_id: 5 } },
    { operation: '__proto__' },
  ]) {
    codes.push((await wire.ask('x', 'call', params)).error.code);
  }
  assert.deepEqual(codes, [-32601, -32601, -32601, -32602, -32602, -32601]);
  assert.deepEqual((await wire.ask(2512, 'reload', {})).error.code, -32601, 'without the hook there is no reload');
  wire.send(`{"jsonrpc":"2.0","id":17,"method":"call","params":"${'x'.repeat(17 * 1024 * 1024)}"}`);
  assert.deepEqual([(await wire.next()).id, complaints.mock.callCount()], [17, 2]);
  wire.call(9007199254740993n.toString());
  mock.restoreAll();
  assert.equal((await wire.next()).result.data, 'on');
});

test('a manifest that is too large for a message is an error, and the conversation goes on', async () => {
  const wire = new Wire(plugin('p', '1.0.0', { description: 'x'.repeat(17 * 1024 * 1024) }));
  assert.equal((await wire.ask(1, 'describe')).error.data.name, 'too_large');
  assert.deepEqual((await wire.ask(2, 'ping')).result, {});
});

test('ids come back as they came', async () => {
  const wire = new Wire(one(() => null));
  for (const id of ['0', '9007199254740993', '"x\\u0001"']) {
    wire.send(`{"jsonrpc":"2.0","id":${id},"method":"ping"}`);
    assert.equal(await wire.lines.next(), `{"jsonrpc":"2.0","id":${id},"result":{}}`);
  }
});

test('a hook is a plain function', () => {
  const open = (config, context) => `${context.dataDir}/${config.file}`;
  assert.equal(open({ file: 'a' }, InitContext.forTest({ dataDir: '/data' })), '/data/a');
});
