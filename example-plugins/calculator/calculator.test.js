/** @file Tests of the calculator: node --test */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Context, PluginError } from '#plugd-sdk';
import { Host } from '#plugd-sdk/testing';

import plugin, { calculate } from './calculator.js';

const value = (expression, digits = 12) => calculate({ expression }, Context.forTest({ config: { digits } })).data;

test('an expression is read as people read it', () => {
  assert.equal(value('2 * (3 + 4)'), 14);
  assert.equal(value('2 + 3 * 4 - 10 / 4'), 11.5);
  assert.equal(value('2 ^ 3 ^ 2'), 512);
  assert.equal(value('-2 ^ 2'), -4);
  assert.equal(value('3 × 4 ÷ 2 − .5 '), 5.5);
});

test('only digits that count are given', () => {
  assert.equal(value('0.1 + 0.2'), 0.3);
  assert.equal(value('1 / 3', 3), 0.333);
});

test('what cannot be read is named, with its place', () => {
  const fails = (expression, name, message) =>
    assert.throws(() => value(expression), (error) => {
      assert.ok(error instanceof PluginError && error.hint, `${error}`);
      assert.deepEqual([error.name, error.message], [name, message]);
      return true;
    });
  fails('2 * (3 + 4', 'unreadable_expression', 'expected a closing parenthesis at character 11, got the end');
  fails('2 + process.exit(1)', 'unreadable_expression', 'expected a number at character 5, got “p”');
  fails('2 3', 'unreadable_expression', 'expected an operator at character 3, got “3”');
  fails('1 / (2 - 2)', 'division_by_zero', 'something is divided by zero');
  fails('9 ^ 9 ^ 9', 'no_number', 'the result is no number that can be written');
});

test('the whole plugin takes a changed configuration without a new process', async () => {
  const host = new Host(plugin, { config: { digits: 3 } });
  assert.equal((await host.call('calculate', { expression: '2 / 3' })).data, 0.667);
  await host.reload({ digits: 5 });
  const { data, summary } = await host.call('calculate', { expression: '2 / 3' });
  assert.deepEqual([data, summary], [0.66667, '2 / 3 = 0.66667']);
});
