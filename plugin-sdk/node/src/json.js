/** @file JSON in which no integer loses a digit, and nothing that is no JSON goes unnoticed. */

import { FaultFound } from './error.js';

/**
 * Something where an integer beyond `Number.MAX_SAFE_INTEGER` may stand: most lines have none, and
 * cost no more than this look.
 */
const LONG_INTEGER = /(?:^|[[:,\s])-?\d{16}/;

const NUMBER = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
const SPACE = /[ \t\r\n]*/y;

/**
 * Parses JSON; integers that a number cannot hold become BigInts.
 * @param {string} text
 * @returns {any}
 * @throws {SyntaxError} where the text is no JSON
 */
export function parse(text) {
  return LONG_INTEGER.test(text) ? new ExactParser(text).whole() : JSON.parse(text);
}

/**
 * Writes a value as JSON, on one line and without halves of surrogate pairs; BigInts become integers.
 *
 * Members that are `undefined` are left out, and `toJSON` is called, as ever.
 * @param {unknown} value
 * @param {string} [name] what the value is called in a complaint
 * @returns {string}
 * @throws {TypeError} where JSON has no form for some part of it; the message says for which
 */
export function stringify(value, name = 'data') {
  let text;
  try {
    text = JSON.stringify(value);
  } catch {
    // A BigInt, a circle, or a `toJSON` that throws: the slower way tells which.
    text = writeExact(value, name, '', []);
  }
  if (text === undefined) throw notJson(name, value);
  const loss = lossIn(value);
  if (loss) throw notJson(`${name}${loss.place}`, loss.what);
  return text.includes('\\ud') ? withoutLoneSurrogates(text) : text;
}

/** Parses by hand, since JSON.parse has rounded a number before anyone can look. */
class ExactParser {
  #text;
  #at = 0;

  /** @param {string} text */
  constructor(text) {
    this.#text = text;
  }

  whole() {
    const value = this.#value();
    if (this.#at < this.#text.length) throw this.#unexpected();
    return value;
  }

  /** @returns {unknown} */
  #value() {
    this.#skipSpace();
    const value = this.#bareValue();
    this.#skipSpace();
    return value;
  }

  #bareValue() {
    switch (this.#text[this.#at]) {
      case '{':
        return this.#object();
      case '[':
        return this.#array();
      case '"':
        return this.#string();
      case 't':
        return this.#word('true', true);
      case 'f':
        return this.#word('false', false);
      case 'n':
        return this.#word('null', null);
      default:
        return this.#number();
    }
  }

  #object() {
    /** @type {Record<string, unknown>} */
    const object = {};
    this.#at += 1;
    this.#skipSpace();
    if (this.#took('}')) return object;
    do {
      this.#skipSpace();
      if (this.#text[this.#at] !== '"') throw this.#unexpected();
      const key = this.#string();
      this.#skipSpace();
      if (!this.#took(':')) throw this.#unexpected();
      const value = this.#value();
      if (key === '__proto__') {
        Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
      } else {
        object[key] = value;
      }
    } while (this.#took(','));
    if (!this.#took('}')) throw this.#unexpected();
    return object;
  }

  #array() {
    /** @type {unknown[]} */
    const array = [];
    this.#at += 1;
    this.#skipSpace();
    if (this.#took(']')) return array;
    do array.push(this.#value());
    while (this.#took(','));
    if (!this.#took(']')) throw this.#unexpected();
    return array;
  }

  /** @returns {string} */
  #string() {
    const from = this.#at;
    let to = from;
    do to = this.#text.indexOf('"', to + 1);
    while (to !== -1 && backslashesBefore(this.#text, to) % 2 === 1);
    if (to === -1) throw this.#unexpected();
    this.#at = to + 1;
    return JSON.parse(this.#text.slice(from, to + 1));
  }

  #number() {
    NUMBER.lastIndex = this.#at;
    const found = NUMBER.exec(this.#text);
    if (found === null) throw this.#unexpected();
    this.#at = NUMBER.lastIndex;
    const [digits, fraction, exponent] = found;
    const number = Number(digits);
    const isWhole = fraction === undefined && exponent === undefined;
    return isWhole && !Number.isSafeInteger(number) ? BigInt(digits) : number;
  }

  /**
   * @template T
   * @param {string} word
   * @param {T} value
   */
  #word(word, value) {
    if (!this.#text.startsWith(word, this.#at)) throw this.#unexpected();
    this.#at += word.length;
    return value;
  }

  /** @param {string} character */
  #took(character) {
    const isThere = this.#text[this.#at] === character;
    if (isThere) this.#at += 1;
    return isThere;
  }

  #skipSpace() {
    SPACE.lastIndex = this.#at;
    SPACE.test(this.#text);
    this.#at = SPACE.lastIndex;
  }

  #unexpected() {
    const found = this.#text[this.#at];
    return new SyntaxError(`expected JSON, found ${found === undefined ? 'its end' : `'${found}'`} at ${this.#at}`);
  }
}

/**
 * @param {string} text
 * @param {number} at
 */
function backslashesBefore(text, at) {
  let from = at;
  while (text[from - 1] === '\\') from -= 1;
  return at - from;
}

/**
 * Writes as JSON.stringify does, but BigInts as integers.
 * @param {any} value
 * @param {string} path what the value is called
 * @param {string} key its key, for `toJSON`
 * @param {unknown[]} around the objects it is in
 * @returns {string | undefined} nothing where the value has no JSON form
 */
function writeExact(value, path, key, around) {
  if (typeof value === 'bigint') return value.toString();
  if (value !== null && typeof value === 'object' && typeof value.toJSON === 'function') value = value.toJSON(key);
  if (typeof value === 'bigint') return value.toString();
  if (value === null || typeof value !== 'object' || isBoxed(value)) return JSON.stringify(value);
  if (around.includes(value)) throw new FaultFound(`${path} is not JSON: it contains itself`);
  around.push(value);
  const parts = [];
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at += 1) {
      parts.push(writeExact(value[at], `${path}[${at}]`, String(at), around) ?? 'null');
    }
  } else {
    for (const name of Object.keys(value)) {
      const part = writeExact(value[name], `${path}.${name}`, name, around);
      if (part !== undefined) parts.push(`${JSON.stringify(name)}:${part}`);
    }
  }
  around.pop();
  return Array.isArray(value) ? `[${parts.join(',')}]` : `{${parts.join(',')}}`;
}

/** @param {object} value */
function isBoxed(value) {
  return value instanceof Number || value instanceof String || value instanceof Boolean;
}

/**
 * Objects that JSON.stringify writes as `{}`, whatever they hold.
 * @type {[new (...given: any[]) => object, string][]}
 */
const LOST = [
  [Promise, 'a Promise: is an await missing?'],
  [Map, 'a Map; use Object.fromEntries'],
  [Set, 'a Set; spread it into an array'],
  [Error, 'an Error; throw it, or use its message'],
  [RegExp, 'a RegExp; use its source'],
];

/**
 * What would silently be left out, or become `null` or `{}`.
 * @param {any} value
 * @returns {{ place: string, what: unknown } | undefined} where it is within the value, and what it is
 */
function lossIn(value) {
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : { place: '', what: value };
  if (typeof value === 'function' || typeof value === 'symbol') return { place: '', what: value };
  if (value === null || typeof value !== 'object') return undefined;
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at += 1) {
      const loss = value[at] === undefined ? { place: '', what: undefined } : lossIn(value[at]);
      if (loss) return { place: `[${at}]${loss.place}`, what: loss.what };
    }
    return undefined;
  }
  if (value instanceof Date && Number.isNaN(value.getTime())) return { place: '', what: 'an invalid Date' };
  if (typeof value.toJSON === 'function') return undefined;
  const isPlain = Object.getPrototypeOf(value) === Object.prototype;
  const lost = isPlain ? undefined : LOST.find(([kind]) => value instanceof kind);
  if (lost) return { place: '', what: lost[1] };
  for (const name of Object.keys(value)) {
    const loss = lossIn(value[name]);
    if (loss) return { place: `.${name}${loss.place}`, what: loss.what };
  }
  return undefined;
}

/**
 * @param {string} path
 * @param {unknown} value the value, or words for it
 */
function notJson(path, value) {
  const what = typeof value === 'function' ? 'a function' : String(value);
  return new FaultFound(`${path} is not JSON: it is ${what}`);
}

/**
 * JSON.stringify escapes half a surrogate pair, which not every reader takes.
 * @param {string} text
 */
function withoutLoneSurrogates(text) {
  return text.replace(/\\(?:ud[89a-f][0-9a-f]{2}|[^])/g, (escape) => (escape.startsWith('\\ud') ? '\ufffd' : escape));
}
