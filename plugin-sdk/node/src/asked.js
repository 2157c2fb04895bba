/** @file Answers that a handler asks for, and whether it waits for them. */

/**
 * An answer to come that knows whether anybody waits for it.
 *
 * Every promise counts as true, so that `if (context.ask('Remove it?', 'boolean'))` would always go on: a
 * call whose handler leaves one behind fails.
 * @template T
 * @extends {Promise<T>}
 */
class Asked extends Promise {
  /** Told once somebody waits. */
  #awaited = () => {};

  /** What is made of it is a plain promise. */
  static get [Symbol.species]() {
    return Promise;
  }

  /**
   * @template T
   * @param {Promise<T>} answer
   * @param {() => void} awaited
   */
  static of(answer, awaited) {
    const asked = new Asked((/** @type {(value: any) => void} */ resolve) => resolve(answer));
    asked.#awaited = awaited;
    return asked;
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
    const asked = Asked.of(answer, () => this.#left.delete(asked));
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
