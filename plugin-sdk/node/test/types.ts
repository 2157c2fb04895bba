/** The types as an author meets them: it is only compiled, with `tsc -p test`. */

import { Context, InitContext, plugin, PluginError, Reply } from '../src/index.js';
import type { FromJsonSchema, Infer } from '../src/index.js';
import { Host } from '../src/testing.js';
import * as z from 'zod';

/** Compiles only where both types are the same. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(_: Same<A, B>): void {}

interface Config {
  word: string;
  limit?: number | undefined;
}

const greet = plugin('greet', '1.0.0', {
  description: 'Greets people.',
  requires: { other: '>=1.0', more: { version: '^2', optional: true } },
  concurrency: 8,
  config: { word: { type: 'string', default: 'hello' }, limit: { type: 'integer', optional: true } },
})
  .init(async (config, context) => {
    same<typeof config, Config>(true);
    context.info('opening %s', context.dataDir);
    return { greeted: 0 };
  })
  .reload((config, context) => {
    same<typeof config, Config>(true);
    same<typeof context.state, { greeted: number }>(true);
  })
  .shutdown((context) => context.debug(context.state.greeted));

greet
  .operation(
    'hello',
    {
      description: 'Greets.',
      readOnly: true,
      input: {
        name: { type: 'string' },
        times: { type: 'integer', default: 1 },
        tone: { enum: ['warm', 'cold'], optional: true },
        tags: { type: 'array', items: { type: 'string' } },
        place: {
          type: 'object',
          properties: { city: { type: 'string' }, zip: { type: 'string' } },
          required: ['city'],
        },
        either: { anyOf: [{ type: 'string' }, { type: 'number' }] },
        maybe: { type: ['string', 'null'] },
      },
      output: { type: 'string' },
    },
    (args, context) => {
      same<
        typeof args,
        {
          name: string;
          times: number;
          tone?: 'warm' | 'cold' | undefined;
          tags: string[];
          place: { city: string; zip?: string | undefined };
          either: string | number;
          maybe: string | null;
        }
      >(true);
      same<typeof context, Context<{ greeted: number }, Config>>(true);
      same<typeof context.cancelled, boolean>(true);
      return new Reply(`hello ${args.name}`, { summary: 'greeted' });
    },
  )
  .operation('none', { description: 'Takes nothing.' }, (args) => {
    same<typeof args, {}>(true);
  })
  .operation('asks', { destructive: true }, async (_, context) => {
    same<boolean, Awaited<ReturnType<typeof yes>>>(true);
    function yes() {
      return context.ask('Sure?', 'boolean');
    }
    const text: string = await context.ask('Who?');
    const days: number = await context.ask('Days?', { type: 'integer', minimum: 1 }, { name: 'days' });
    const many = await context.askMany({
      user: 'Who?',
      key: { prompt: 'Key?', secret: true },
      age: { prompt: 'Age?', schema: 'integer' },
    });
    same<typeof many, { user: string; key: string; age: number }>(true);
    const { data, summary } = await context.call<{ n: number }>('other.lookup', { text, days });
    same<typeof summary, string | undefined>(true);
    return data.n;
  })
  // @ts-expect-error a text was promised
  .operation('wrong', { output: { type: 'string' } }, () => 5)
  // @ts-expect-error there is no such option
  .operation('misspelt', { readonly: true }, () => 5);

const object = z.object({ name: z.string(), times: z.int().default(1) });
plugin('zod', '1.0.0', { config: z.object({ word: z.string() }) }).operation(
  'hello',
  { input: object },
  (args, context) => {
    same<typeof args, { name: string; times: number }>(true);
    const word: string = context.config.word;
    return word;
  },
);

const written = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] } as const;
same<Infer<typeof written>, { a: string }>(true);
same<FromJsonSchema<{ const: 5 }>, 5>(true);

const handler = ({ name }: { name: string }, context: Context<undefined, Config>) => `${context.config.word} ${name}`;
handler({ name: 'Ada' }, Context.forTest({ config: { word: 'hi' } }));
InitContext.forTest({ dataDir: '.' }).progress(1, 2, 'half');
plugin('apart', '1.0.0', { config: { word: { type: 'string' } } }).operation(
  'hello',
  { input: { name: { type: 'string' } } },
  (args) => args.name,
);

const host = new Host(greet, {
  config: { word: 'hi' },
  calls: { 'other.lookup': () => ({ n: 1 }) },
  answers: { answer: true },
});
const reply = await host.call('hello', { name: 'Ada' }, { caller: 'ada' });
const error: PluginError | undefined = reply.error;
throw error ?? new PluginError('name', 'message', { hint: undefined, retryable: true, cause: error });
