// bench/gateway/far-place.mjs: a place as in bench/gateway/place.mjs, but the origin is on another machine as far as the
// network can tell: in a network namespace of its own, at the other end of a veth pair, with an address that is nobody's.
// Sandboxes refuse to lead to loopback and to addresses of the machine they run on.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { hostsFile } from './names.mjs';
import { createPrograms, PORTS, prepareNetwork, saysLine } from './place.mjs';

/** Of the blocks that documentation may use. */
export const ORIGIN = '203.0.113.10';
const HERE = '203.0.113.1';

export async function openFarPlace({ dir, load }) {
  prepareNetwork({ dir, load, hosts: hostsFile(ORIGIN) });
  // By default only connections over loopback get the port of one that was closed a second ago.
  writeFileSync('/proc/sys/net/ipv4/tcp_tw_reuse', '1');
  const programs = createPrograms(dir);
  const origin = programs.start(['unshare', '--net', '--', load, 'origin', `0.0.0.0:${PORTS.plain}`]);
  await saysLine(origin, 'ready');
  const there = String(origin.pid);
  ip('link', 'add', 'here', 'type', 'veth', 'peer', 'name', 'there', 'netns', there);
  ip('address', 'add', `${HERE}/24`, 'dev', 'here');
  ip('link', 'set', 'here', 'up');
  const ipThere = (...args) => execFileSync('nsenter', ['--target', there, '--net', '--', 'ip', ...args]);
  ipThere('address', 'add', `${ORIGIN}/24`, 'dev', 'there');
  ipThere('link', 'set', 'there', 'up');
  return { dir, load, ...programs, close: () => programs.stop(origin) };
}

function ip(...args) {
  execFileSync('ip', args);
}
