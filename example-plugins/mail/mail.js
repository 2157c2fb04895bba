#!/usr/bin/env node
/** @file mail: sends a mail, once under a key. What cannot be undone, and files in the plugin's own folder. */

import { createHash, randomUUID } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';

// In `vendor`, by a link; take it along by `cp -RL`.
import { plugin, PluginError, Reply } from '#plugd-sdk';

/** Opens the outbox: a folder with a file for each mail, from which another program would carry them away. */
export function openOutbox(_config, context) {
  const outbox = path.join(context.dataDir, 'outbox');
  fs.mkdirSync(outbox, { recursive: true });
  return { outbox };
}

const read = (file) => JSON.parse(fs.readFileSync(file, 'utf8'));

/** Writes a file that is there whole or not at all, whatever happens meanwhile. */
function write(file, value) {
  const draft = fs.openSync(`${file}.draft`, 'w');
  fs.writeFileSync(draft, JSON.stringify(value));
  fs.fsyncSync(draft);
  fs.closeSync(draft);
  fs.renameSync(`${file}.draft`, file);
}

/**
 * The id of the mail of this call. Under a key it follows from caller and key: plugd gives the first answer again by
 * itself, and where it cannot know whether a mail went out before a crash, the mail is found here.
 */
function idFor({ idempotencyKey: key, caller }) {
  if (key === undefined) return randomUUID();
  return createHash('sha256').update(JSON.stringify([caller ?? '', key])).digest('hex').slice(0, 32);
}

export function send({ to, subject, body }, context) {
  if (`${subject}${body}`.trim() === '') {
    throw new PluginError('empty_mail', 'the mail says nothing', { hint: 'give a subject or a body' });
  }
  const id = idFor(context);
  const file = path.join(context.state.outbox, `${id}.json`);
  if (fs.existsSync(file)) {
    context.info(`${id} was sent before`);
    return new Reply({ id, to: read(file).to }, { summary: `was sent before, as ${id}` });
  }
  write(file, { id, to, subject, body, at: new Date().toISOString() });
  return new Reply({ id, to }, { summary: `sent to ${to} as ${id}` });
}

export function listSent(_args, context) {
  const { outbox } = context.state;
  const files = fs.readdirSync(outbox).filter((name) => name.endsWith('.json'));
  const mails = files.map((name) => read(path.join(outbox, name)));
  mails.sort((one, other) => (one.at < other.at ? 1 : -1));
  return mails.map(({ id, to, subject, at }) => ({ id, to, subject, at }));
}

const text = (description, more = {}) => ({ type: 'string', description, ...more });

export default plugin('mail', '1.0.0', { description: 'Sends mails.' })
  .init(openOutbox)
  .operation(
    'send',
    {
      title: 'Send a mail',
      description: 'Sends a mail to one person. A mail that is sent cannot be called back.',
      whenToUse: 'Somebody asks for a mail to be sent, and has said to whom and what it should say.',
      whenNotToUse: 'A text is only to be written or shown: nobody has asked for it to be sent.',
      examples: ['send Ada a mail that the meeting is at three', '给小明发一封邮件说会议改到三点'],
      category: 'messages',
      input: {
        to: text('The address it goes to.', { format: 'email', examples: ['ada@example.org'] }),
        subject: text('What stands above it, on one line.', { maxLength: 200, pattern: '^[^\\r\\n]*$', default: '' }),
        body: text('What it says.', { maxLength: 100000, default: '' }),
      },
      output: { id: text('The number of the mail.'), to: text('The address it went to.') },
      readOnly: false,
      destructive: true,
      idempotent: false,
      openWorld: true,
      timeoutMs: 10_000,
    },
    send,
  )
  .operation(
    'list_sent',
    {
      title: 'Mails that were sent',
      description: 'Lists the mails that were sent, the newest first. What they say is left out.',
      whenToUse: 'Somebody asks whether a mail has gone out, or to whom.',
      examples: ['which mails were sent today', '邮件发出去了吗'],
      category: 'messages',
      output: {
        type: 'array',
        items: {
          type: 'object',
          properties: { id: text('Its number.'), to: text('Where to.'), subject: text('Its subject.'), at: text('When.') },
        },
      },
      readOnly: true,
      idempotent: true,
      timeoutMs: 5000,
    },
    listSent,
  )
  .serve(import.meta);
