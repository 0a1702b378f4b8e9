// server/page.ts: the page's files. Names come from a listing of the build directory, so no path of a request reaches the disk.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

export interface PageFile {
  readonly body: Buffer;
  readonly headers: Readonly<Record<string, string>>;
}

export interface Page {
  /** null: no such file. */
  file(path: string): PageFile | null;
  /** Served for every path that the page's own router handles. */
  index(): PageFile;
}

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  json: 'application/json',
  webmanifest: 'application/manifest+json',
  svg: 'image/svg+xml',
  png: 'image/png',
  ico: 'image/x-icon',
  woff2: 'font/woff2',
  wasm: 'application/wasm',
  txt: 'text/plain; charset=utf-8',
};

export function openPage(directory: string): Page {
  let names = list(directory);
  /** One shared buffer per file: many slow readers must not cost one copy each. */
  const kept = new Map<string, Buffer>();
  const read = (name: string): PageFile | null => {
    if (!names.has(name)) return null;
    const type = TYPES[/\.(\w+)$/.exec(name)?.[1] ?? ''] ?? 'application/octet-stream';
    // The content of a file with a hash in its name never changes.
    const hashed = /^assets\/.*[-.][\w-]{8,}\.\w+$/.test(name);
    const body = (hashed ? kept.get(name) : undefined) ?? readFileSync(join(directory, name));
    if (hashed) kept.set(name, body);
    return {
      body,
      headers: {
        'Content-Type': type,
        'Cache-Control': hashed ? 'public, max-age=31536000, immutable' : 'no-store',
      },
    };
  };
  return {
    file: (path) => (path === '/' || path === '/index.html' ? null : read(path.slice(1))),
    index: () => {
      // Listing again makes a rebuilt page visible without a restart.
      names = list(directory);
      return read('index.html') ?? plainPage('The page is not built.', 'Build it with: npm run build');
    },
  };
}

const PLAIN_LOOK =
  'body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:18vh auto;padding:0 1.5rem;color:#16191d;background:#fff}h1{font-size:1.35rem;line-height:1.3}p{color:#565e6a;overflow-wrap:anywhere}@media(prefers-color-scheme:dark){body{color:#e8ecf1;background:#0e1116}p{color:#9aa6b4}}';
/** Only this one style: without a sign-in no other file is served. */
const PLAIN_POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(PLAIN_LOOK).digest('base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

/** A page of text alone, for when the real page cannot be shown. */
export function plainPage(title: string, text: string): PageFile {
  const words = (value: string): string =>
    value.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  return {
    body: Buffer.from(
      `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>ags</title><style>${PLAIN_LOOK}</style><main><h1>${words(title)}</h1><p>${words(text)}</p></main></html>\n`,
    ),
    headers: {
      'Content-Type': TYPES['html'] ?? '',
      'Cache-Control': 'no-store',
      'Content-Security-Policy': PLAIN_POLICY,
    },
  };
}

function list(directory: string): ReadonlySet<string> {
  if (statSync(directory, { throwIfNoEntry: false })?.isDirectory() !== true) return new Set();
  return new Set(
    readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1)),
  );
}
