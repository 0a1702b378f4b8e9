// scripts/build.mjs: dist/ from src/. The compiler's own output is what tests and the documentation read; the command
// itself is bundled, because loading a hundred small modules costs more than starting the sandbox.
import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { build } from 'esbuild';

const root = new URL('..', import.meta.url).pathname;
execFileSync(process.execPath, [`${root}/node_modules/typescript/bin/tsc`, '-p', root], { stdio: 'inherit' });
await build({
  entryPoints: { main: `${root}/src/cli/main.ts`, exec: `${root}/src/cli/verbs/exec.ts` },
  outdir: `${root}/dist/bundle`,
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  minifySyntax: true,
  minifyWhitespace: true,
  legalComments: 'none',
  // A native module: it stays a package of its own.
  external: ['@lydell/node-pty'],
  logLevel: 'warning',
});
