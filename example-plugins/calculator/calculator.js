#!/usr/bin/env node
/** @file calculator: works out an expression. A configuration, and failures that say where and what to do. */

// In `vendor`, by a link; take it along by `cp -RL`.
import { plugin, PluginError, Reply } from '#plugd-sdk';

const HINT = 'write numbers, + - * / ^ and parentheses, such as 2 * (3 + 4)';

/** Reads an expression from left to right: a sum of products of powers. Nothing of it is run as a program. */
class Expression {
  constructor(text) {
    // The signs that people write in other ways mean the same.
    this.text = text.replace(/[×·]/g, '*').replace(/÷/g, '/').replace(/−/g, '-');
    this.tokens = this.text.matchAll(/\d+(\.\d*)?|\.\d+|\S/g);
    this.next();
  }

  next() {
    const { value } = this.tokens.next();
    this.token = value?.[0];
    this.at = value?.index ?? this.text.length;
  }

  /** Takes one of these signs, if it is next. */
  take(...signs) {
    const sign = this.token;
    if (!signs.includes(sign)) return undefined;
    this.next();
    return sign;
  }

  whole() {
    const value = this.sum();
    if (this.token !== undefined) this.fail('an operator');
    return value;
  }

  sum() {
    let value = this.product();
    for (let sign; (sign = this.take('+', '-')); ) value += (sign === '+' ? 1 : -1) * this.product();
    return value;
  }

  product() {
    let value = this.signed();
    for (let sign; (sign = this.take('*', '/')); ) {
      const factor = this.signed();
      if (sign === '/' && factor === 0) {
        throw new PluginError('division_by_zero', 'something is divided by zero', { hint: 'divide by another number' });
      }
      value = sign === '*' ? value * factor : value / factor;
    }
    return value;
  }

  /** A sign binds less than a power: -2 ^ 2 is -4. */
  signed() {
    return this.take('-') ? -this.signed() : this.power();
  }

  power() {
    const base = this.atom();
    return this.take('^') ? base ** this.signed() : base;
  }

  atom() {
    const value = Number(this.token);
    if (!Number.isNaN(value)) {
      this.next();
      return value;
    }
    if (!this.take('(')) this.fail('a number');
    const inner = this.sum();
    if (!this.take(')')) this.fail('a closing parenthesis');
    return inner;
  }

  fail(expected) {
    const found = this.token === undefined ? 'the end' : `“${this.token}”`;
    const message = `expected ${expected} at character ${this.at + 1}, got ${found}`;
    throw new PluginError('unreadable_expression', message, { hint: HINT });
  }
}

export function calculate({ expression }, context) {
  const value = new Expression(expression).whole();
  if (!Number.isFinite(value)) {
    throw new PluginError('no_number', 'the result is no number that can be written', { hint: 'use smaller numbers' });
  }
  const rounded = Number(value.toPrecision(context.config.digits));
  return new Reply(rounded, { summary: `${expression} = ${rounded}` });
}

export default plugin('calculator', '1.0.0', {
  description: 'Works out arithmetic.',
  config: {
    digits: { type: 'integer', minimum: 1, maximum: 15, default: 12, description: 'How many digits count.' },
  },
})
  .operation(
    'calculate',
    {
      title: 'Calculator',
      description: 'Works out an arithmetic expression of numbers, + - * / ^ and parentheses. Gives one number back.',
      whenToUse: 'Numbers have to be added, multiplied, divided or raised to a power.',
      whenNotToUse: 'Units, dates or currencies have to be converted.',
      examples: ['what is 12.5 percent of 3200', 'how much is (17 + 4) * 3', '算一下 128 乘以 46', '3200 除以 5 是多少'],
      category: 'numbers',
      input: {
        expression: {
          type: 'string',
          minLength: 1,
          maxLength: 1000,
          description: 'What to work out, with numbers, + - * / ^ and parentheses.',
          examples: ['2 * (3 + 4)'],
        },
      },
      output: { type: 'number' },
      readOnly: true,
      idempotent: true,
      timeoutMs: 5000,
    },
    calculate,
  )
  .serve(import.meta);
