/** @file What a handler gives when data alone does not say it all. */

import { refuseUnknown } from './names.js';

const ABOUT = ['summary', 'nextActions'];

/** Data with one line about it, and what may be worth calling next. */
export class Reply {
  /**
   * @param {unknown} data what was asked for, any JSON
   * @param {{summary?: string, nextActions?: {operation?: string, description?: string, arguments?: object}[]}} [about]
   *   one line for people and for a model's context; calls worth making next, at most 20
   */
  constructor(data, about = {}) {
    refuseUnknown('a Reply', about, ABOUT);
    const { summary, nextActions } = about;
    this.data = data;
    this.summary = summary;
    this.nextActions = nextActions;
  }
}
