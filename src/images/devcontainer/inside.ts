// images/devcontainer/inside.ts: detects a dev container that ags wrote, and answers there what its rules are.
// A dev container has no sandboxes: it is one. Connections go to its gateway, as from any program inside.
import { existsSync } from 'node:fs';
import { connect } from 'node:net';
import { hostAndPort } from '../../protocol/host-name.ts';
import type { NetworkRule } from '../../protocol/network.ts';
import { readAllowList } from '../../config/network/allow-list.ts';
import type { Reached } from '../../exec/net-test.ts';
import { PROXY_PORT } from '../../run/network/plan-network.ts';
import type { HostContext } from '../../run/host-context.ts';

/** Paths and names that the image, the compose file and this file share. */
export const INSIDE = {
  settings: '/etc/ags',
  allowList: '/etc/ags/allow-list.txt',
  /** A variable that is 1 inside. */
  mark: 'AGS_DEVCONTAINER',
} as const;

export function insideDevContainer({ env }: Pick<HostContext, 'env'>): boolean {
  return env[INSIDE.mark] === '1' && existsSync(INSIDE.allowList);
}

/** The rules of the list that the gateway reads. */
export function rulesInside(): NetworkRule[] {
  return readAllowList(INSIDE.allowList);
}

const AT_ONCE = 8;
const WAIT_MS = 30_000;

export async function testFromInside(places: readonly { host: string; port: number }[]): Promise<Reached[]> {
  const answers: Reached[] = [];
  for (let at = 0; at < places.length; at += AT_ONCE)
    answers.push(...(await Promise.all(places.slice(at, at + AT_ONCE).map(ask))));
  return answers;
}

function ask({ host, port }: { host: string; port: number }): Promise<Reached> {
  const began = performance.now();
  return new Promise((resolve) => {
    const say = (verdict: Reached['verdict'], why: string): void => {
      socket.destroy();
      resolve({ host, port, verdict, why, ms: Math.round(performance.now() - began) });
    };
    const place = hostAndPort(host, port);
    const socket = connect({ host: '127.0.0.1', port: PROXY_PORT, timeout: WAIT_MS });
    let head = '';
    socket.setEncoding('latin1');
    socket.on('connect', () =>
      socket.write(
        port === 80
          ? `HEAD http://${place}/ HTTP/1.1\r\nHost: ${place}\r\nConnection: close\r\n\r\n`
          : `CONNECT ${place} HTTP/1.1\r\nHost: ${place}\r\n\r\n`,
      ),
    );
    socket.on('data', (text: string) => {
      head += text;
      if (!head.includes('\r\n\r\n')) return;
      const reason = /^HTTP\/1\.[01] \d+ ?([^\r]*)/.exec(head)?.[1] ?? '';
      if (/^X-Ags: policy/im.test(head)) say('refused', reason);
      else if (/^X-Ags: gateway/im.test(head)) say('unreachable', reason);
      else say('reachable', '');
    });
    socket.on('timeout', () => say('unreachable', `no answer in ${WAIT_MS / 1000} seconds`));
    socket.on('error', () => say('unreachable', 'the listener of the gateway is not open'));
    socket.on('close', () => say('unreachable', 'no answer'));
  });
}
