// scripts/docs.mjs: writes the documents that are made from code, all in docs/reference/: configuration.md, errors.md, ags.schema.json and openapi.json.
// It builds first, unless dist/ is up to date. With --check nothing is written, and the exit status says whether all are fresh.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root, setUp } from './setup.mjs';

/**
 * Every generated document by its path. Takes the modules, so that a test can hand in the sources and the command the build.
 * @param {{ keys: typeof import('../src/config/file/keys.ts'), defaults: typeof import('../src/config/defaults.ts'), errors: typeof import('../src/protocol/errors.ts'), presets: typeof import('../src/config/network/presets.ts'), routes: typeof import('../src/server/routes/routes.ts'), openapi: typeof import('../src/server/routes/openapi.ts') }} code
 * @returns {Record<string, string>}
 */
export function renderDocs({ keys, defaults, errors, presets, routes, openapi }) {
  return {
    'docs/reference/configuration.md': configurationPage(keys.listKeys(), defaults, presets),
    'docs/reference/errors.md': errorsPage(errors),
    'docs/reference/ags.schema.json': `${JSON.stringify(keys.publicJsonSchema(), null, 2)}\n`,
    'docs/reference/openapi.json': `${JSON.stringify(openapi.openApiDocument(routes.ROUTES, version()), null, 2)}\n`,
  };
}

function version() {
  return JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version;
}

function configurationPage(keys, defaults, { PRESETS }) {
  const sections = keys.filter(({ path }) => !path.includes('.'));
  return `${[
    MADE('`src/protocol/config/config.ts` and `src/config/defaults.ts`'),
    '# Configuration',
    CONFIGURATION_INTRO,
    ...sections.map((section) => sectionPart(section, keys)),
    '## Built-in lists',
    'Lists append across the layers; these entries come first.',
    ...[
      ['`tools`: directories and files of the home, shown where they exist', defaults.TOOL_DIRS],
      ['`mounts`: places outside the home, shown where they exist', defaults.PLACES],
      ['`etc`: names below /etc', defaults.ETC],
      ['`env.pass`: variables passed to the sandbox', defaults.ENV_PASS],
      ['Variables passed only if every path in them is visible inside', defaults.PATH_ENV],
      ['`hide`: files of the project that do not exist inside', defaults.HIDE],
    ].map(([title, list]) => `### ${title}\n\n${list.map((item) => `\`${item}\``).join(' ')}`),
    '### `network`: allowed hosts',
    'The presets with a star are the default list (`network.defaults`). `network.presets` adds others, or any of them when `network.defaults` is false.',
    table(
      ['name', 'default', 'for', 'rules'],
      Object.entries(PRESETS).map(([name, preset]) => [
        `\`${name}\``,
        preset.default ? '★' : '',
        preset.about,
        preset.rules.map((rule) => `\`${rule}\``).join(' '),
      ]),
    ),
  ].join('\n\n')}\n`;
}

function sectionPart(section, keys) {
  const within = (path) => path.startsWith(`${section.path}.`) || path.startsWith(`${section.path}[].`);
  const sections = keys.filter(({ path, kind }) => kind === 'section' && within(path));
  const inner = keys.filter(
    ({ path, kind }) =>
      kind !== 'section' && within(path) && !sections.some((other) => path.startsWith(`${other.path}.`)),
  );
  const rows = section.kind === 'section' ? inner : [section, ...inner];
  const mark = section.path.includes('.') ? '###' : '##';
  const text =
    section.kind === 'section' ? [`${mark} ${section.path}`, section.description] : [`${mark} ${section.path}`];
  return [...text, keyTable(rows), ...sections.map((one) => sectionPart(one, keys))].join('\n\n');
}

function keyTable(rows) {
  return table(
    ['key', 'value', 'built-in', "in a project's file", 'meaning'],
    rows.map((key) => [
      `\`${key.path}\``,
      key.type,
      key.builtIn ?? '',
      TRUST[key.trust],
      `${key.description}${exampleOf(key)}`,
    ]),
  );
}

const TRUST = { always: 'asks', above: 'asks if above yours', outside: 'asks unless inside', never: 'free' };

function exampleOf({ example, builtIn }) {
  return example === undefined || String(example) === builtIn ? '' : ` For example \`${JSON.stringify(example)}\`.`;
}

function errorsPage({ ERRORS, EXIT }) {
  const codes = Object.entries(ERRORS).map(([code, { exit, http, meaning }]) => [`\`${code}\``, exit, http, meaning]);
  return `${[
    MADE('`src/protocol/errors.ts`'),
    '# Errors and exit statuses',
    'ags reports an error that you can fix as one line on standard error, with a hint; with `--json` as `{"error":{"code","message","hint"}}`.',
    '## Exit statuses',
    'A sandboxed command keeps its own exit status. `ags` itself uses these:',
    table(
      ['status', 'meaning'],
      Object.entries(EXIT).map(([name, status]) => [status, EXIT_WORDS[name] ?? name]),
    ),
    '## Error codes',
    table(['code', 'exit status', 'HTTP status', 'meaning'], codes),
  ].join('\n\n')}\n`;
}

const EXIT_WORDS = {
  done: 'Done.',
  failed: 'Failed, or the answer is no.',
  usage: 'Wrong usage or configuration.',
  notFound: 'A task, project or path was not found.',
  signIn: 'A sign-in is needed.',
  checks: 'A check failed.',
  conflict: 'A conflict, or something changed in the meantime.',
  limit: 'A limit was reached.',
  unavailable: 'The sandbox, or something it needs, is not available here.',
  cancelled: 'Cancelled by the user.',
};

function table(head, rows) {
  return [head, head.map(() => '---'), ...rows].map((row) => `| ${row.map(cell).join(' | ')} |`).join('\n');
}

function cell(value) {
  return String(value).replaceAll('|', '\\|');
}

const MADE = (source) => `<!-- Made from ${source.replaceAll('`', '')} by "npm run docs". Do not edit. -->`;

const CONFIGURATION_INTRO = `Everything works without configuration. Your values replace or extend the built-in ones, in layers; later layers win:

1. built-in values,
2. your own file, \`$XDG_CONFIG_HOME/ags/config.yaml\` (by default \`~/.config/ags/config.yaml\`), for all projects,
3. \`ags.yaml\` at the root of the project,
4. flags of one command.

Single values replace, lists append. \`ags config\` shows the values in force and where each comes from; \`ags init\` writes an \`ags.yaml\` with what the project needs, \`ags init --full\` one that explains every key.
Both files have the same keys. An unknown key or a wrong value is an error with file, line and column; ags ignores nothing. For completion in an editor, point it to [ags.schema.json](ags.schema.json).

**What a project's own file may do.** A repository that you have just cloned must not grant itself rights. Keys marked "free" only restrict a sandbox, or act only inside it.
Keys marked "asks" let it see or use more: they take effect only after you have approved that exact file with \`ags trust\`, and again whenever it changes. Your own \`config.yaml\` needs no approval.

**Patterns** (\`hide\`, \`reveal\`, \`review.risky\`): \`*\` is any part of a name, \`?\` one character, \`**\` any number of directories; upper and lower case match alike.
A pattern without a slash is a name, at any depth (\`*.pem\`). With a slash inside or in front, it is a path from the project's root (\`config/dev.json\`, \`/.env\`). With a slash at the end, it is a directory (\`.ssh/\`).
In YAML, quote a pattern that begins with \`*\`. Revealing a directory reveals everything below it; to reveal something inside a hidden directory, write its path.

**Sizes and times**: \`512k\`, \`2g\`, \`1t\` are powers of 1024; \`50%\` is a share of this machine's memory; \`90s\`, \`5m\`, \`1h30m\`, \`1d\`.

**Rules** (\`network.allow\`, \`network.deny\`, \`--allow\`, \`ags allow\`): \`github.com\` is that host on port 443, \`*.example.com\` every name below it but not itself, \`example.com:8443\` another port, \`http://example.com\` port 80.
With \`GET,HEAD api.example.com/v1/*\` the gateway also reads the requests. A deny wins over every allow, wherever either stands. A host that no rule allows cannot be reached, and its name is not looked up.

**What no configuration can show**: your home as a whole, \`/proc\`, \`/sys\`, \`/dev\`, \`/run\`, and the files that ags itself relies on.`;

async function main() {
  await setUp({ programs: [] });
  const [keys, defaults, errors, presets, routes, openapi] = await Promise.all(
    [
      'config/file/keys.js',
      'config/defaults.js',
      'protocol/errors.js',
      'config/network/presets.js',
      'server/routes/routes.js',
      'server/routes/openapi.js',
    ].map((path) => import(join(root, 'dist', path))),
  );
  const check = process.argv.includes('--check');
  const stale = Object.entries(renderDocs({ keys, defaults, errors, presets, routes, openapi })).filter(
    ([path, content]) => read(path) !== content,
  );
  for (const [path, content] of stale) {
    if (check) console.error(`${path} is not fresh. Write it again: npm run docs`);
    else {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), content);
      console.error(`wrote ${path}`);
    }
  }
  if (check && stale.length > 0) process.exitCode = 1;
}

function read(path) {
  try {
    return readFileSync(join(root, path), 'utf8');
  } catch {
    return undefined;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
