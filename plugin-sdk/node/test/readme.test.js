/** @file The README's plugin and its test are true, and what is exported is what is typed. */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import * as sdk from '../src/index.js';
import * as testing from '../src/testing.js';

const PACKAGE = fileURLToPath(new URL('..', import.meta.url));

/** The files that a page shows below a line ``File `NAME`:``. */
function filesOf(page) {
  const blocks = page.matchAll(/^File `(.+)`:\n\n```\w+\n([^]*?)^```$/gm);
  return Object.fromEntries([...blocks].map(([, name, text]) => [name, text]));
}

test('the plugin of the README passes its own test and describes itself', (context) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'plugd-sdk-'));
  context.after(() => fs.rmSync(folder, { recursive: true }));
  const files = filesOf(fs.readFileSync(path.join(PACKAGE, 'README.md'), 'utf8'));
  assert.deepEqual(Object.keys(files), ['plugin.js', 'plugin.test.js']);
  for (const [name, text] of Object.entries(files)) fs.writeFileSync(path.join(folder, name), text);
  fs.writeFileSync(path.join(folder, 'package.json'), '{"type":"module"}');
  fs.mkdirSync(path.join(folder, 'node_modules'));
  fs.symlinkSync(PACKAGE, path.join(folder, 'node_modules/plugd-sdk'));

  // A runner within a runner would report to it.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const node = (...args) => spawnSync(process.execPath, args, { cwd: folder, env, encoding: 'utf8' });
  const tested = node('--test', 'plugin.test.js');
  assert.equal(tested.status, 0, tested.stdout);
  assert.match(tested.stdout, /a handler is a plain function[^]*the whole plugin runs in memory/);
  assert.equal(JSON.parse(node('plugin.js', '--describe').stdout).name, 'memo');
});

test('a copy of package.json and src is a whole package', (context) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'plugd-sdk-'));
  context.after(() => fs.rmSync(folder, { recursive: true }));
  for (const part of ['package.json', 'src'])
    fs.cpSync(path.join(PACKAGE, part), path.join(folder, part), { recursive: true });
  fs.writeFileSync(
    path.join(folder, 'plugin.mjs'),
    "import { plugin } from './src/index.js'; plugin('p', '1.0.0').serve();",
  );
  const { stdout } = spawnSync(process.execPath, ['plugin.mjs', '--version'], { cwd: folder, encoding: 'utf8' });
  assert.equal(stdout, 'p 1.0.0\n');
});

/** The members that a class has and shows, its own and those of its instances. */
function membersOf(kind) {
  const statics = Object.getOwnPropertyNames(kind).filter((name) => !['length', 'name', 'prototype'].includes(name));
  let names = [];
  for (
    let proto = kind.prototype;
    proto && ![Object.prototype, Error.prototype].includes(proto);
    proto = Object.getPrototypeOf(proto)
  ) {
    names = names.concat(Object.getOwnPropertyNames(proto));
  }
  return new Set([...statics, ...names].filter((name) => !['constructor', 'name'].includes(name)));
}

test('what is exported is declared, down to the members of classes', () => {
  const pages = [
    [sdk, 'index.d.ts'],
    [testing, 'testing.d.ts'],
  ];
  for (const [exported, file] of pages) {
    const types = fs.readFileSync(path.join(PACKAGE, 'src', file), 'utf8');
    const declared = [...types.matchAll(/^export (?:class|function) (\w+)/gm)].map(([, name]) => name);
    assert.deepEqual(declared.sort(), Object.keys(exported).sort(), file);
    for (const [name, kind] of Object.entries(exported)) {
      if (!/^[A-Z]/.test(name)) continue;
      for (const member of membersOf(kind)) {
        assert.match(
          types,
          new RegExp(`^  (?:static |readonly |get )*${member}[(<:?]`, 'm'),
          `${name}.${member} in ${file}`,
        );
      }
    }
  }
});
