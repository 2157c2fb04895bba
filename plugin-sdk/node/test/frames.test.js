/** @file Lines, whatever pieces they come in. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { LineSplitter } from '../src/frames.js';

function split(chunks, limit) {
  const seen = [];
  const splitter = new LineSplitter(
    {
      line: (text) => seen.push(text),
      tooLong: (head) => seen.push({ tooLong: head }),
      notUtf8: () => seen.push('not UTF-8'),
    },
    limit,
  );
  const buffer = Buffer.alloc(64);
  for (const chunk of chunks) {
    // As a stream does that uses its buffer anew.
    buffer.fill(10);
    chunk.copy(buffer);
    splitter.push(buffer, chunk.length);
  }
  splitter.finish();
  return seen;
}

test('lines are whole wherever they were cut', () => {
  const bytes = Buffer.from('{"a":"北京"}\n\n{"😀":1}\nlast');
  const whole = ['{"a":"北京"}', '', '{"😀":1}', 'last'];
  for (let first = 0; first <= bytes.length; first += 1) {
    for (let second = first; second <= bytes.length; second += 1) {
      const chunks = [bytes.subarray(0, first), bytes.subarray(first, second), bytes.subarray(second)];
      assert.deepEqual(split(chunks), whole, `cut at ${first} and ${second}`);
    }
  }
});

test('a line above the limit is told once, with its beginning, and the next is read', () => {
  const bytes = Buffer.from('12345\n123456\n12345\n');
  const wanted = ['12345', { tooLong: '123456' }, '12345'];
  assert.deepEqual(split([bytes], 5), wanted);
  assert.deepEqual(
    split(
      [...bytes].map((byte) => Buffer.of(byte)),
      5,
    ),
    wanted,
  );
});

test('bytes that are no UTF-8 are told apart from the character that stands for them', () => {
  assert.deepEqual(split([Buffer.from('\ufffd\n'), Buffer.of(0x22, 0xff, 0x22, 10), Buffer.from('x\n')]), [
    '\ufffd',
    'not UTF-8',
    'x',
  ]);
});
