// test/attacks/victims.ts: the host that tests attack: a home full of secrets, and the canaries that `ags doctor --attack` sets out
// (src/attack/table/canaries.ts).
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { LISTENERS, type Places } from '../../src/attack/table/attack.ts';
import {
  careless,
  difference,
  openCanaries,
  secretWord,
  snapshot,
  TRACKED,
  UNTRACKED_SECRETS,
} from '../../src/attack/table/canaries.ts';
import { giveTo, ROOTS_USER, type Machine } from '../harness.ts';

export interface Victims extends AsyncDisposable {
  readonly places: Places;
  /** A part of every secret. */
  readonly word: string;
  /** A file whose descriptor a careless caller leaves open. */
  readonly secretFile: string;
  /** Environment variables of a caller with many secrets. */
  readonly env: Readonly<Record<string, string>>;
  /** Everything that was touched since the start, one line each; empty if nothing was. */
  touched(): string[];
}

export async function createVictims(machine: Machine): Promise<Victims> {
  const word = secretWord();
  const hostTmp = mkdtempSync('/tmp/ags-victim-');
  placeFiles(machine, word, hostTmp);
  const sockets = [
    join(machine.home, 'agent.sock'),
    join(hostTmp, 'agent.sock'),
    ...['agent.sock', 'sub/agent.sock', 'node_modules/agent.sock'].map((path) => join(machine.project, path)),
  ];
  const tools = join(machine.home, '.local/bin');
  const canaries = await openCanaries({
    word,
    uid: victimUid(machine),
    outside: hostTmp,
    streams: sockets,
    toolDir: tools,
  });
  const log = join(hostTmp, 'log');
  // The files that ags keeps for itself are left out.
  const look = (): Map<string, string> =>
    snapshot(
      [machine.home, hostTmp],
      [machine.stateDir, join(machine.home, '.cache'), join(machine.home, '.local/state'), log],
    );
  const before = look();
  return {
    word,
    secretFile: join(hostTmp, 'secret'),
    env: {
      ...careless(word, sockets, canaries.places.LOOPBACK_PORT),
      BASH_ENV: join(hostTmp, 'secret'),
      PERL5OPT: '-MAgs::Victim',
      GIT_CONFIG_COUNT: '1',
      GIT_CONFIG_KEY_0: 'core.fsmonitor',
      GIT_CONFIG_VALUE_0: `touch ${log}`,
    },
    places: {
      ...canaries.places,
      SIBLING: join(machine.home, 'code/sibling'),
      HOST_TMP: join(hostTmp, 'secret'),
      TOOLS: tools,
      HOME: machine.home,
      PROJECT: machine.project,
      STATE: machine.stateDir,
      VARIABLES: '',
      SHOWN: '',
      NETWORK: 'on',
      ECHO: '',
      SECURE: '',
      SERVICE: '',
      ENGINE: '',
      DOMAIN: 'ags-attack.test',
      ...LISTENERS,
    },
    touched: () => [...difference(before, look()), ...canaries.noticed()],
    async [Symbol.asyncDispose]() {
      await canaries[Symbol.asyncDispose]();
      rmSync(hostTmp, { recursive: true, force: true });
    },
  };
}

/** The user of the sandbox itself, where possible: then only the sandbox separates the two. */
function victimUid(machine: Machine): number {
  return machine.caller === 'root' ? ROOTS_USER : machine.uid;
}

function placeFiles(machine: Machine, word: string, hostTmp: string): void {
  const inHome = (path: string, content: string): void => {
    mkdirSync(dirname(join(machine.home, path)), { recursive: true });
    writeFileSync(join(machine.home, path), content);
  };
  for (const path of [
    '.ssh/id_ed25519',
    '.aws/credentials',
    '.netrc',
    '.bash_history',
    '.config/gh/hosts.yml',
    '.gnupg/secring.gpg',
    'marker.txt',
    'code/sibling/private.txt',
  ])
    inHome(path, `${word}\n`);
  for (const path of ['.bashrc', '.profile', '.zshenv', '.gitconfig', '.config/ags/config.yaml'])
    inHome(path, '# as it was\n');
  // Root acts as the user in some tests, and git refuses repositories of other users.
  inHome('.gitconfig', '[user]\n\tname = Dev\n\temail = dev@example.test\n[safe]\n\tdirectory = *\n');
  inHome('.config/ags/config.yaml', '');
  inHome('.local/bin/tool', '#!/bin/sh\necho tool\n');
  for (const path of TRACKED) machine.write(path, 'ordinary\n');
  machine.git('add', '-A', '-f');
  machine.git('commit', '-q', '-m', 'second');
  machine.git('config', 'remote.origin.url', `https://${word}@example.test/x.git`);
  machine.git('config', 'http.extraHeader', `Authorization: ${word}`);
  for (const path of UNTRACKED_SECRETS) machine.write(path, `${word}\n`);
  writeFileSync(join(hostTmp, 'secret'), `${word}\n`);
  giveTo(machine.home, machine.uid);
  giveTo(hostTmp, machine.uid);
}
