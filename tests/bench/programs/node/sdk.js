/** @file The same echo with the SDK. */

import { plugin } from '../../../../plugin-sdk/node/src/index.js';

const options = {
  description: 'Gives its text back.',
  input: { payload: { type: 'string', description: 'What to give back.' } },
  output: { type: 'string' },
  readOnly: true,
};

export default plugin('echo', '1.0.0')
  .operation('echo', options, ({ payload }) => payload)
  .serve(import.meta);
