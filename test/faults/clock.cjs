'use strict';
// test/faults/clock.cjs: preloaded into programs of ags and their runners through NODE_OPTIONS: shifts the clock by the seconds in a file. The
// machine's clock and file times are unchanged.
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
