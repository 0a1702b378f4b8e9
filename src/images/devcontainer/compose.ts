// images/devcontainer/compose.ts: the compose file of a dev container. Pure.
// Invariants: only the gateway has a network, and its socket is in no volume of the dev container. No service runs as root, has a
// capability, a host port or the engine's socket; the one exception is the Docker service, which starts as root with two capabilities and
// gives up both before anything starts (decision 16). Files that decide about the dev container are read-only in it. Every service, volume
// and network has the mark in its name: tools find them by the project's name, which is that of a directory or of a file in it.
import { environmentOf } from '../../services/presets/connection.ts';
import type { ComposeService } from './services.ts';
import { INSIDE } from './inside.ts';
import type { NetworkRule } from '../../protocol/network.ts';

const SOCKET = '/run/ags/gateway.sock';
const LISTENER = '127.0.0.1:3128';
const ENGINE = '127.0.0.1:2375';

/** The same rights as a task's nested Docker (sandbox/nested/engine-args.ts): the filter is off here because ags installs its own. */
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
# holder has a network with only loopback, and a listener there: ${LISTENER}. dev and the services beside it share that network.
# The listener leads to gateway, the only service with a way out, which allows the hosts in allow-list.txt.
# ${mark} is in every name, so that no other project on this machine gets the same volumes and containers, whatever its name.

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
${hosts(names)}    command: ${flow(['ags', 'gateway', 'door', '--socket', SOCKET, '--listen', LISTENER])}
    volumes: ["door-${mark}:/run/ags"]
    healthcheck:
      test: ${flow(['CMD', 'ags', 'gateway', 'check', '--socket', SOCKET, '--listen', LISTENER])}
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
      # Read-only: programs on your machine obey these files.
      - .:${workspace}/.devcontainer:ro
${input.hasGit ? `      # To commit from inside, remove this line: then programs inside can change your git's hooks and settings.\n      - ../.git:${workspace}/.git:ro\n` : ''}      - .:${INSIDE.settings}:ro
      - home-${mark}:/home/dev
${services.map((service) => `\n${serviceText(service, mark)}`).join('')}${input.docker ? engineService(mark) : ''}
networks:
  out-${mark}: {}

volumes:
${volumes.map((name) => `  ${name}-${mark}: {}\n`).join('')}`;
}

export const BASE_IMAGE = 'node:22-bookworm-slim';

/** The variable in .env that selects another image. */
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

/** Every service in the shared network can be found by name. */
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

/** A JSON string is valid YAML; "$" is doubled because compose would read a variable. */
function quoted(text: string): string {
  return JSON.stringify(text.replaceAll('$', '$$$$'));
}

export interface DevContainer {
  /** The directory's name inside; letters, digits, ".", "_" and "-". */
  readonly name: string;
  /** Part of the names of containers and volumes; unique on this machine. */
  readonly mark: string;
  readonly hasGit: boolean;
  readonly services: readonly ComposeService[];
  /** With its own Docker daemon. */
  readonly docker: boolean;
  readonly rules: readonly NetworkRule[];
  /** Settings of the gateway besides its list of hosts: name servers, private addresses, upstream proxies. */
  readonly gatewayFile: string | null;
  /** Variables by which programs find the gateway. */
  readonly environment: Readonly<Record<string, string>>;
  readonly agsPackage: string;
  /** For Visual Studio Code. */
  readonly extensions: readonly string[];
}
