/** @file No integer loses a digit, and nothing that is no JSON goes unnoticed. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { parse, stringify } from '../src/json.js';

test('integers beyond the safe ones become BigInts, and are written as integers', () => {
  for (const text of ['2512292042121000001', '-9007199254740993', '9007199254740992', `1${'0'.repeat(400)}`]) {
    assert.equal(parse(text), BigInt(text));
    assert.equal(stringify(parse(`{"a":[${text},{"b": ${text}}]}`)), `{"a":[${text},{"b":${text}}]}`);
  }
});

test('all other numbers stay numbers', () => {
  for (const text of [
    '9007199254740991',
    '-9007199254740991',
    '0',
    '1e30',
    '12345678901234567.5',
    '1234567890123456e2',
  ]) {
    assert.equal(parse(`[${text},9007199254740993]`)[0], Number(text));
  }
});

test('beside a large integer everything is read as JSON.parse reads it', () => {
  const value = {
    text: 'a "quoted" \\ \u0001 \u{1F600} 12345678901234567890 \\"',
    '\\': '\\\\',
    '"': [],
    nested: [[[{}]], null, true, false, -0.5e-3, ''],
    ['__proto__']: { own: 1 },
  };
  const text = JSON.stringify(value, null, '\t').replace(/^\{/, '{ "n" : 9007199254740993 ,\r\n');
  const { n, ...rest } = parse(text);
  assert.equal(n, 9007199254740993n);
  assert.deepEqual(JSON.stringify(rest), JSON.stringify(value));
  assert.equal(Object.getPrototypeOf(parse(text)), Object.prototype);
});

test('what is no JSON is refused beside a large integer, too', () => {
  const wrong = [
    '',
    '}',
    ',1',
    '{"a"}',
    '{a:1}',
    '[1',
    '[1,]',
    '01',
    '"\n"',
    '"a',
    'nul',
    '+1',
    '.5',
    '1}',
    '{"a":1,}',
    '"\\"',
  ];
  for (const text of wrong) {
    assert.throws(() => parse(`[9007199254740993,${text}`), SyntaxError, text);
    assert.throws(() => parse(text), SyntaxError, text);
  }
});

test('what JSON.stringify would lose is refused, and said where it is', () => {
  const circle = { list: [{}] };
  circle.list[0].back = circle;
  const cases = [
    [{ a: [1, NaN] }, 'data.a[1] is not JSON: it is NaN'],
    [-Infinity, 'data is not JSON: it is -Infinity'],
    [[undefined], 'data[0] is not JSON: it is undefined'],
    [() => 1, 'data is not JSON: it is a function'],
    [{ seen: new Map([[1, 2]]) }, 'data.seen is not JSON: it is a Map; use Object.fromEntries'],
    [new Set([1]), 'data is not JSON: it is a Set; spread it into an array'],
    [{ at: new Date('no date') }, 'data.at is not JSON: it is an invalid Date'],
    [{ a: Promise.resolve(1) }, 'data.a is not JSON: it is a Promise: is an await missing?'],
    [[{ a: 1 }, { b: [Promise.resolve(1)] }], 'data[1].b[0] is not JSON: it is a Promise: is an await missing?'],
    [{ why: new TypeError('gone') }, 'data.why is not JSON: it is an Error; throw it, or use its message'],
    [new Error('gone'), 'data is not JSON: it is an Error; throw it, or use its message'],
    [{ a: { go: () => 1 } }, 'data.a.go is not JSON: it is a function'],
    [{ a: Symbol('s') }, 'data.a is not JSON: it is Symbol(s)'],
    [{ like: /x/ }, 'data.like is not JSON: it is a RegExp; use its source'],
    [{ big: 1n, a: Promise.resolve(1) }, 'data.a is not JSON: it is a Promise: is an await missing?'],
    [circle, 'data.list[0].back is not JSON: it contains itself'],
    [{ big: 1n, a: [NaN] }, 'data.a[0] is not JSON: it is NaN'],
  ];
  for (const [value, message] of cases) assert.throws(() => stringify(value), { name: 'TypeError', message });
});

test('BigInts do not change how the rest is written', () => {
  const date = new Date(0);
  const rest = { a: undefined, date, boxed: [Object(1), Object('x')], nothing: null, 'k"': 'v"', empty: [{}, []] };
  assert.equal(stringify({ n: 5n, ...rest }), `{"n":5,${JSON.stringify(rest).slice(1)}`);
  const twice = { n: 1n };
  assert.equal(stringify([twice, twice]), '[{"n":1},{"n":1}]', 'the same twice is no circle');
});

test('half a surrogate pair is replaced, a whole one and what looks like half of one are kept', () => {
  assert.equal(stringify('a\ud800b \u{1F600} \\ud800'), '"a\ufffdb \u{1F600} \\\\ud800"');
  assert.equal(stringify({ '\udc00': '\\\ud800' }), '{"\ufffd":"\\\\\ufffd"}');
});
