import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { renderDocs } from '../scripts/docs.mjs';
import * as defaults from '../src/config/defaults.ts';
import * as keys from '../src/config/file/keys.ts';
import * as presets from '../src/config/network/presets.ts';
import * as errors from '../src/protocol/errors.ts';
import * as openapi from '../src/server/routes/openapi.ts';
import * as routes from '../src/server/routes/routes.ts';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');

test.each(Object.entries(renderDocs({ keys, defaults, errors, presets, routes, openapi })))(
  '%s matches the code (to update: npm run docs)',
  (path, content) => {
    expect(readFileSync(join(root, path), 'utf8')).toBe(content);
  },
);

test('the configuration page explains every key, and the errors page every code', () => {
  const page = readFileSync(join(root, 'docs/reference/configuration.md'), 'utf8');
  const undocumented = keys
    .listKeys()
    .filter(
      ({ path, kind, description }) =>
        description === '' || !page.includes(kind === 'section' ? `## ${path}` : `\`${path}\``),
    );
  expect(undocumented).toEqual([]);
  const codes = readFileSync(join(root, 'docs/reference/errors.md'), 'utf8');
  expect(Object.keys(errors.ERRORS).filter((code) => !codes.includes(`\`${code}\``))).toEqual([]);
});
