#!/usr/bin/env node
// The installed command. See src/cli/main.ts.
import { closeInherited } from '../dist/cli/descriptors.js';

closeInherited();
const { main } = await import('../dist/cli/main.js');
process.exitCode = await main(process.argv.slice(2));
