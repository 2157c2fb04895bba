/** @file A plugin that is declared wrongly. */

import { plugin } from '../src/index.js';

plugin('wrong', '1.0.0')
  .operation('doIt', {}, () => null)
  .operation('listed', { input: { type: 'array' } }, () => null)
  .serve();
