#!/usr/bin/env node
'use strict';
// The installed command. See src/cli/main.ts. CommonJS, because Node starts it sooner.
// Node 22 and newer can keep compiled code between runs.
require('node:module').enableCompileCache?.();

require('../dist/bundle/main.cjs')
  .main(process.argv.slice(2))
  .then((code) => {
    process.exitCode = code;
  });
