'use strict';
// test/faults/clock.cjs: loaded into a program of ags before anything else (NODE_OPTIONS), and handed on to the runners that it starts: a
// clock that is off by as many seconds as the file says at that moment. The clock of the machine, its files' included, goes on as it is.
const { readFileSync } = require('node:fs');

const Real = Date;
const file = process.env.AGS_FAULT_CLOCK;
const offMs = () => Number(readFileSync(file, 'utf8')) * 1000;

globalThis.Date = class extends Real {
  constructor(...given) {
    super(...(given.length === 0 ? [Real.now() + offMs()] : given));
  }

  static now() {
    return Real.now() + offMs();
  }
};
