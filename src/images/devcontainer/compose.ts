// images/devcontainer/compose.ts: the compose file of a dev container. Pure.
// Invariants: only the gateway has a network; the socket that leads to it is in no volume of the dev container; nobody is root, has
// a capability, a port of the host or the engine's socket, but for two capabilities of the engine beside it, which give up being root
// and them before anything starts (decision 16); what decides about the dev container is read-only in it. Every service, volume and network
// has the mark in its name: tools find them by the name of the project, which is that of a directory or what a file in it says.
import { environmentOf } from '../../services/presets/connection.ts';
import type { ComposeService } from './services.ts';
import type { DevContainer } from './files.ts';
import { INSIDE } from './inside.ts';

const SOCKET = '/run/ags/gateway.sock';
const DOOR = '127.0.0.1:3128';
const ENGINE = '127.0.0.1:2375';

/** What it may do is what an engine beside a task may (sandbox/inner-args.ts): the filter that is off here is laid by ags itself. */
const engineService = (mark: string): string => `
  # An engine of its own: root only to become users that own nothing on your machine, before it starts. Nothing of your engine is in it.
  # Its containers have no network; images come through the door. Docker Compose 1 does not know "systempaths".
  docker-${mark}:
    build:
      context: .
      target: docker
      args: *args
    network_mode: "service:holder-${mark}"
    restart: unless-stopped
    init: true
    read_only: true
    user: "0:0"
    cap_drop: [ALL]
    cap_add: [SETUID, SETGID]
    security_opt: ["no-new-privileges:true", "seccomp=unconfined", "apparmor=unconfined", "systempaths=unconfined"]
    command: ${flow(['ags', 'gateway', 'engine', '--listen', ENGINE])}
    pids_limit: 4096
    mem_limit: \${DOCKER_MEMORY:-4g}
    tmpfs: ["/ags:mode=0755,uid=63128,gid=63128"]
    volumes: ["docker-data-${mark}:/var/lib/docker"]
`;

export function composeFile(input: DevContainer): string {
  const { services, mark } = input;
  const names = services.map(({ service }) => service.name);
  const workspace = `/workspaces/${input.name}`;
  const volumes = [
    'door',
    'log',
    'home',
    ...names.map((name) => `${name}-data`),
    ...(input.docker ? ['docker-data'] : []),
  ];
  return `# Written by "ags devcontainer init"; see docs/containers/devcontainers.md of ags.
# holder has a network with nothing in it but loopback, and a door there: ${DOOR}. dev and what is beside it share that network.
# The door leads to gateway, which alone reaches the world, and lets through what allow-list.txt names.
# ${mark} is in every name, so that no other project on this machine has the same volumes and containers, whatever it is called.

x-locked: &locked
  read_only: true
  cap_drop: [ALL]
  security_opt: ["no-new-privileges:true"]

x-ags: &ags
  <<: *locked
  build:
    context: .
    target: ags
    args: &args
      BASE_IMAGE: \${BASE_IMAGE:-${BASE_IMAGE}}
      AGS_PACKAGE: \${AGS_PACKAGE:-${input.agsPackage}}
  user: gateway
  pids_limit: 64
  mem_limit: 512m

services:
  holder-${mark}:
    <<: *ags
    network_mode: none
${hosts(names)}    command: ${flow(['ags', 'gateway', 'door', '--socket', SOCKET, '--listen', DOOR])}
    volumes: ["door-${mark}:/run/ags"]
    healthcheck:
      test: ${flow(['CMD', 'ags', 'gateway', 'check', '--socket', SOCKET, '--listen', DOOR])}
      interval: 30s

  gateway-${mark}:
    <<: *ags
    networks: [out-${mark}]
    restart: unless-stopped
    command: ${flow(['ags', 'gateway', 'serve', '--socket', SOCKET, '--rules', INSIDE.allowList, ...(input.gatewayFile === null ? [] : ['--config', `${INSIDE.settings}/gateway.yaml`]), '--log', '/var/log/ags/network.jsonl'])}
    volumes: ["door-${mark}:/run/ags", "log-${mark}:/var/log/ags", ".:${INSIDE.settings}:ro"]
    healthcheck:
      test: ${flow(['CMD', 'ags', 'gateway', 'check', '--socket', SOCKET])}
      interval: 30s

  dev-${mark}:
    <<: *locked
    build:
      context: .
      target: dev
      args: *args
    network_mode: "service:holder-${mark}"
    depends_on:
      gateway-${mark}: { condition: service_started }
${names.map((name) => `      ${name}-${mark}: { condition: service_healthy }\n`).join('')}${input.docker ? `      docker-${mark}: { condition: service_started }\n` : ''}    user: dev
    init: true
    command: [sleep, infinity]
    working_dir: ${workspace}
    pids_limit: 4096
    mem_limit: \${MEMORY:-8g}
    tmpfs: ["/tmp:exec,mode=1777", "/var/tmp:exec,mode=1777"]
    environment:
${entries({ [INSIDE.mark]: '1', ...input.environment, ...environmentOf(services) }, 6)}    volumes:
      - ..:${workspace}
      # Read-only: programs on your machine act on what is in them.
      - .:${workspace}/.devcontainer:ro
${input.hasGit ? `      # To commit from inside, take this line away: then whatever runs there can set your git's hooks and settings.\n      - ../.git:${workspace}/.git:ro\n` : ''}      - .:${INSIDE.settings}:ro
      - home-${mark}:/home/dev
${services.map((service) => `\n${serviceText(service, mark)}`).join('')}${input.docker ? engineService(mark) : ''}
networks:
  out-${mark}: {}

volumes:
${volumes.map((name) => `  ${name}-${mark}: {}\n`).join('')}`;
}

export const BASE_IMAGE = 'node:22-bookworm-slim';

/** The name that .env may give another image by. */
export function imageVariable(name: string): string {
  return `${name.toUpperCase().replaceAll('-', '_')}_IMAGE`;
}

function serviceText(made: ComposeService, mark: string): string {
  const { name, memoryBytes } = made.service;
  return `  ${name}-${mark}:
    <<: *locked
    image: "\${${imageVariable(name)}:-${made.image}}"
    network_mode: "service:holder-${mark}"
    user: ${made.user}
    command: ${flow(made.command)}
${section('environment', made.environment)}    pids_limit: 512
    mem_limit: ${memoryBytes}
    tmpfs: ${flow(made.tmpfs)}
    volumes: ["${name}-data-${mark}:${made.data}"]
    healthcheck:
      test: ${flow(['CMD', ...made.healthy])}
      interval: 2s
      retries: 30
`;
}

function section(key: string, values: Readonly<Record<string, string>>): string {
  return Object.keys(values).length === 0 ? '' : `    ${key}:\n${entries(values, 6)}`;
}

/** Found by their names as well, by all that share the network. */
function hosts(names: readonly string[]): string {
  return names.length === 0 ? '' : `    extra_hosts: ${flow(names.map((name) => `${name}:127.0.0.1`))}\n`;
}

function entries(values: Readonly<Record<string, string>>, indent: number): string {
  return Object.entries(values)
    .map(([key, value]) => `${' '.repeat(indent)}${key}: ${quoted(value)}\n`)
    .join('');
}

function flow(words: readonly string[]): string {
  return `[${words.map(quoted).join(', ')}]`;
}

/** A string of JSON is one of YAML; compose would take "$" for a variable. */
function quoted(text: string): string {
  return JSON.stringify(text.replaceAll('$', '$$$$'));
}
