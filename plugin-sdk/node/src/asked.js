/** @file Answers that a handler asks for, and whether it waits for them. */

import { Misuse } from './error.js';

/**
 * An answer to come that knows whether anybody waits for it.
 *
 * Every promise counts as true, so that `if (context.ask('Remove it?', 'boolean'))` would always go on: a
 * call whose handler leaves one behind fails. So does one that wants of it what an answer has.
 * @template T
 * @extends {Promise<T>}
 */
class Asked extends Promise {
  /** Told once somebody waits. */
  #awaited = () => {};
  #what = '';

  /** What is made of it is a plain promise. */
  static get [Symbol.species]() {
    return Promise;
  }

  /**
   * @template T
   * @param {string} what
   * @param {Promise<T>} answer
   * @param {() => void} awaited
   */
  static of(what, answer, awaited) {
    const asked = new Asked((/** @type {(value: any) => void} */ resolve) => resolve(answer));
    asked.#awaited = awaited;
    asked.#what = what;
    return asked;
  }

  /** Of what `call` gives. @returns {never} */
  get data() {
    return this.#tooEarly('data');
  }

  /** Likewise. @returns {never} */
  get summary() {
    return this.#tooEarly('summary');
  }

  /** Likewise. @returns {never} */
  get callId() {
    return this.#tooEarly('callId');
  }

  /** Of an answer that is put into a text, or counted with. @returns {never} */
  [Symbol.toPrimitive]() {
    return this.#tooEarly('the value');
  }

  /** @param {string} part @returns {never} */
  #tooEarly(part) {
    throw new Misuse(`it wants ${part} of an answer that has not come; ${forgotten(this.#what)}`);
  }

  /**
   * `await`, `Promise.all` and their like come here, too.
   * @param {any} [fulfilled]
   * @param {any} [rejected]
   * @returns {Promise<any>}
   */
  then(fulfilled, rejected) {
    this.#awaited();
    return super.then(fulfilled, rejected);
  }
}

/** What a call has asked for and its handler does not wait for yet. */
export class Unawaited {
  /** What each is, by itself. @type {Map<Asked<any>, string>} */
  #left = new Map();

  /**
   * @template T
   * @param {string} what
   * @param {Promise<T>} answer
   * @returns {Promise<T>}
   */
  add(what, answer) {
    const asked = Asked.of(what, answer, () => this.#left.delete(asked));
    this.#left.set(asked, what);
    return asked;
  }

  /** The first of what was left behind, once the handler has ended; nobody will hear of them any more. */
  leave() {
    const [what] = this.#left.values();
    for (const asked of this.#left.keys()) asked.catch(() => {});
    return what;
  }
}

/**
 * What to do where something was asked for and not awaited.
 * @param {string} what
 */
export function forgotten(what) {
  return `did you forget \`await\` before ${what}(…)?`;
}
