// images/wanted/base-image.ts: the Dockerfile of the base image: common tools, Node, and the selected agents. Pure.
// Invariant: every version that ags chooses is named here; the image has no set-user-ID program and no way to root.
import type { Agent } from '../../agents/agent.ts';
import { AgsError } from '../../protocol/errors.ts';

/** Projects may build on it: FROM ags-base. */
export const BASE_IMAGE = 'ags-base:latest';
/** The default base of the base image. */
export const DEBIAN = { suite: 'trixie', image: 'debian:trixie-slim' } as const;

const TOOLS =
  'bash ca-certificates curl git jq less openssh-client patch perl procps python3 python3-pip python3-venv ripgrep unzip xz-utils';
const COMPILERS = 'build-essential pkg-config';
const PACKAGES = `${TOOLS} ${COMPILERS}`;
const NODE = '24.9.0';
const NPM = '10.9.9';

export interface BaseInput {
  readonly from: string;
  readonly arch: 'x64' | 'arm64';
  readonly agents: readonly Agent[];
}

/** `bundle.pem` in the context has this machine's trusted certificates; the registry arrives as an argument. */
export function baseDockerfile({ from, arch, agents }: BaseInput): string {
  const tarball = (name: string, version: string, to: string): string =>
    `mkdir -p ${to} && curl -fsSL "\${npm_config_registry%/}/${name}/-/${name}-${version}.tgz" | tar -xz -C ${to} --strip-components=1`;
  return `${[
    `FROM ${from}`,
    'ARG npm_config_registry',
    `RUN apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends ${PACKAGES} && rm -rf /var/lib/apt/lists/* /var/cache/apt/archives`,
    'COPY bundle.pem /etc/ssl/certs/ca-certificates.crt',
    'ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt',
    `RUN ${tarball(`node-linux-${arch}`, NODE, '/opt/node')} && ln -s /opt/node/bin/node /usr/local/bin/node`,
    `RUN ${tarball('npm', NPM, '/opt/npm')} && chmod 755 /opt/npm/bin/*-cli.js && ln -s /opt/npm/bin/npm-cli.js /usr/local/bin/npm && ln -s /opt/npm/bin/npx-cli.js /usr/local/bin/npx`,
    ...agents.map((agent) => installStep(agent, arch)),
    'RUN groupadd --gid 1001 agent && useradd --uid 1001 --gid 1001 --create-home --shell /bin/bash agent',
    'RUN find / -xdev -type f -perm /6000 -exec chmod a-s {} + && ! command -v sudo',
    'USER 1001:1001',
    `LABEL ags.agents="${agentsLabel(agents)}"`,
  ].join('\n')}\n`;
}

function installStep({ name, title, install }: Agent, arch: 'x64' | 'arm64'): string {
  if (install === null) throw new AgsError('usage.invalid', `${title} is part of ags and needs no installation.`);
  const to = `/opt/agents/${name}`;
  const wanted = [
    `${install.package}@${install.version}`,
    ...Object.entries(install.more ?? {}).map(([one, exact]) => `${one}@${exact}`),
  ];
  const entry = `${to}/node_modules/${install.entry[arch]}`;
  const program = `/usr/local/bin/${install.program}`;
  const link =
    install.node === null
      ? `chmod 755 ${entry} && ln -s ${entry} ${program}`
      : `printf '#!/bin/sh\\nexec node ${entry} "$@"\\n' > ${program} && chmod 755 ${program}`;
  return `RUN npm install --ignore-scripts --no-fund --no-audit --no-progress --loglevel=error --include=optional --prefix ${to} -- ${wanted.join(' ')} && rm -rf /root/.npm && ${link}`;
}

/** "claude@2.1.0 codex@0.1.0": the agents that an image contains. */
export function agentsLabel(agents: readonly Agent[]): string {
  return agents.map(({ name, install }) => `${name}@${install?.version ?? ''}`).join(' ');
}

/** null: the image does not have the agent, or does not say so. */
export function agentInImage(
  labels: Readonly<Record<string, string>>,
  name: string,
): { readonly version: string } | null {
  const found = (labels['ags.agents'] ?? '').split(' ').find((word) => word.startsWith(`${name}@`));
  const version = found?.slice(name.length + 1) ?? '';
  return /^[\w][\w.+-]{0,60}$/.test(version) ? { version } : null;
}
