#!/usr/bin/env node
// The installed command. See src/cli/main.ts.
import { existsSync } from 'node:fs';

const bundle = new URL('../dist/bundle/main.js', import.meta.url);
const { main } = await import(
  process.env.AGS_DEV !== undefined && existsSync(bundle) ? bundle.href : '../dist/cli/main.js'
);
process.exitCode = await main(process.argv.slice(2));
