// test/conformance/docker-backend.ts: this machine's Docker as a backend.
import type { Engine } from '../../src/sandbox/engine/engine.ts';
import { findProgram } from '../../src/sandbox/programs.ts';
import { openEngine } from './engine-backend.ts';

export const ENGINE: Engine = {
  name: 'docker',
  program: findProgram('docker') ?? 'docker',
  options: [],
  env: { PATH: '/usr/bin:/bin', HOME: '/dev/null/nowhere' },
  socket: '/var/run/docker.sock',
  rootless: false,
  far: null,
};

export const openDocker = openEngine(ENGINE, {
  root: ['.dockerenv', 'sys', 'etc'],
  etc: ['hostname', 'hosts', 'mtab', 'resolv.conf'],
});
