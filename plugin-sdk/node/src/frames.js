/** @file Bytes split into lines, whatever pieces they come in. */

/** The longest line either side may send, in bytes, its line end not counted. */
export const FRAME_LIMIT = 16 * 1024 * 1024;

/** The `id` of a line that is too long is looked for in as many bytes of it. */
const HEAD_SIZE = 4096;

const LINE_FEED = 10;

/** What is done with lines. The two last are told once a line.
 * @typedef {object} LineHandlers
 * @property {(text: string) => void} line takes a line, without its end
 * @property {(head: string) => void} tooLong takes the beginning of a line above the limit
 * @property {() => void} notUtf8 is told of a line that is no UTF-8
 */

/** Splits bytes into lines and decodes them. */
export class LineSplitter {
  #handlers;
  #limit;
  /** Pieces of a line whose end has not come yet. @type {Buffer[]} */
  #pieces = [];
  #size = 0;
  /** Whether the rest of the line is passed over, since it is too long. */
  #skipping = false;

  /**
   * @param {LineHandlers} handlers
   * @param {number} [limit] bytes of a line
   */
  constructor(handlers, limit = FRAME_LIMIT) {
    this.#handlers = handlers;
    this.#limit = limit;
  }

  /**
   * Takes the first bytes of a buffer, which may be used anew afterwards.
   * @param {Buffer} buffer
   * @param {number} [length]
   */
  push(buffer, length = buffer.length) {
    let from = 0;
    while (from < length) {
      const found = buffer.indexOf(LINE_FEED, from);
      if (found === -1 || found >= length) {
        this.#keep(buffer, from, length);
        return;
      }
      if (this.#size === 0 && !this.#skipping) {
        this.#take(buffer, from, found);
      } else {
        this.#keep(buffer, from, found);
        this.#end();
      }
      from = found + 1;
    }
  }

  /** Takes what came after the last line feed for a line, too. */
  finish() {
    if (this.#size > 0 || this.#skipping) this.#end();
  }

  /**
   * @param {Buffer} buffer
   * @param {number} from
   * @param {number} to
   */
  #keep(buffer, from, to) {
    if (this.#skipping || from === to) return;
    this.#pieces.push(Buffer.from(buffer.subarray(from, to)));
    this.#size += to - from;
    if (this.#size > this.#limit) {
      this.#tooLong(Buffer.concat(this.#pieces, Math.min(this.#size, HEAD_SIZE)));
      this.#forget();
      this.#skipping = true;
    }
  }

  #end() {
    const whole = Buffer.concat(this.#pieces, this.#size);
    const skipped = this.#skipping;
    this.#forget();
    this.#skipping = false;
    if (!skipped) this.#take(whole, 0, whole.length);
  }

  #forget() {
    this.#pieces = [];
    this.#size = 0;
  }

  /**
   * @param {Buffer} buffer
   * @param {number} from
   * @param {number} to
   */
  #take(buffer, from, to) {
    if (to - from > this.#limit) {
      this.#tooLong(buffer.subarray(from, Math.min(to, from + HEAD_SIZE)));
      return;
    }
    const text = buffer.toString('utf8', from, to);
    // Bytes that are no UTF-8 are decoded to this character, which may also have been sent.
    if (text.includes('\ufffd') && !isUtf8(buffer.subarray(from, to))) this.#handlers.notUtf8();
    else this.#handlers.line(text);
  }

  /** @param {Buffer} head */
  #tooLong(head) {
    this.#handlers.tooLong(head.toString('latin1'));
  }
}

/** @param {Buffer} bytes */
function isUtf8(bytes) {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}
