// images/devcontainer/files.ts: the contents of the files of a `.devcontainer/`. Pure.
import { formatRule } from '../../protocol/network-rule.ts';
import type { NetworkRule } from '../../protocol/network.ts';
import { NESTED_BASE } from '../../sandbox/nested/engine-args.ts';
import { BASE_IMAGE, composeFile, imageVariable } from './compose.ts';
import { type DevContainer } from './compose.ts';

export function devContainerFiles(input: DevContainer): Map<string, string> {
  return new Map([
    ['devcontainer.json', devContainerJson(input)],
    ['docker-compose.yaml', composeFile(input)],
    ['Dockerfile', dockerfile(input.docker)],
    ['allow-list.txt', allowList(input.rules)],
    ...(input.gatewayFile === null ? [] : [['gateway.yaml', input.gatewayFile] as const]),
    ['.env.example', envExample(input)],
  ]);
}

function devContainerJson({ name, mark, extensions }: DevContainer): string {
  const proxy = 'http://127.0.0.1:3128';
  const value = {
    name,
    dockerComposeFile: 'docker-compose.yaml',
    service: `dev-${mark}`,
    workspaceFolder: `/workspaces/${name}`,
    remoteUser: 'dev',
    overrideCommand: false,
    shutdownAction: 'stopCompose',
    // Ports are forwarded to this machine by hand, not because a program inside opens them.
    otherPortsAttributes: { onAutoForward: 'ignore' },
    customizations: {
      vscode: {
        settings: { 'http.proxy': proxy, 'http.proxySupport': 'override', 'task.allowAutomaticTasks': 'off' },
        extensions,
      },
    },
  };
  return `// Written by "ags devcontainer init". The rules are in docker-compose.yaml and allow-list.txt.\n${JSON.stringify(value, null, 2)}\n`;
}

function dockerfile(docker: boolean): string {
  return docker ? `${DOCKERFILE.replace(DEV_TOOLS, `${DEV_TOOLS}${DOCKER_CLIENT}`)}${DOCKER_STAGE}` : DOCKERFILE;
}

const DEV_TOOLS = 'FROM ags AS dev\nUSER root\n';

const DOCKER_CLIENT = `RUN command -v docker > /dev/null || { apt-get update && \\
      { apt-get install --yes --no-install-recommends docker-cli || apt-get install --yes --no-install-recommends docker.io; } \\
      && rm -rf /var/lib/apt/lists/*; }
`;

/** The last stage, which is built only if the dev container has Docker. */
const DOCKER_STAGE = `
# The Docker daemon, with none of your files. Its data belongs to the first of its user IDs.
FROM ags AS docker
USER root
RUN command -v dockerd > /dev/null || { apt-get update && \\
      apt-get install --yes --no-install-recommends ca-certificates docker.io iptables perl-base && rm -rf /var/lib/apt/lists/*; }
RUN mkdir -p /ags /run /tmp /root /etc/docker /var/lib/docker && rm -rf /var/lib/docker/* && \\
    chown ${NESTED_BASE}:${NESTED_BASE} /var/lib/docker && chmod 0711 /var/lib/docker
RUN find / -xdev -type f -perm /6000 -exec chmod a-s {} +
`;

const DOCKERFILE = `# Written by "ags devcontainer init". Tools that the base image already has are kept.
ARG BASE_IMAGE=${BASE_IMAGE}

# The gateway and its listener: Node and ags, no root.
FROM \${BASE_IMAGE} AS ags
ARG AGS_PACKAGE=@ags/cli
USER root
RUN command -v ags > /dev/null || npm install --global "$AGS_PACKAGE"
RUN grep -q '^gateway:' /etc/passwd || echo 'gateway:x:63128:63128::/nonexistent:/bin/false' >> /etc/passwd; \\
    grep -q '^gateway:' /etc/group || echo 'gateway:x:63128:' >> /etc/group; \\
    mkdir -p /run/ags /var/log/ags && chown 63128:63128 /run/ags /var/log/ags && chmod 0700 /run/ags /var/log/ags
USER gateway

# Where you work. Add the project's tools here, before the last lines.
${DEV_TOOLS}RUN if command -v apt-get > /dev/null && ! command -v git > /dev/null; then \\
      apt-get update && apt-get install --yes --no-install-recommends bash ca-certificates curl git less openssh-client procps ripgrep \\
      && rm -rf /var/lib/apt/lists/*; \\
    fi
# On Linux, editors give "dev" your own user ID, which a user of the base image may have, for example 1000.
RUN sed -i '/^[^:]*:[^:]*:[1-5][0-9][0-9][0-9]:/d' /etc/passwd; sed -i '/^[^:]*:[^:]*:[1-5][0-9][0-9][0-9]:/d' /etc/group; \\
    grep -q '^dev:' /etc/passwd || echo 'dev:x:1001:1001::/home/dev:/bin/sh' >> /etc/passwd; \\
    grep -q '^dev:' /etc/group || echo 'dev:x:1001:' >> /etc/group; \\
    mkdir -p /home/dev && chown 1001:1001 /home/dev; \\
    if command -v bash > /dev/null; then sed -i 's|^\\(dev:.*\\):/bin/sh$|\\1:/bin/bash|' /etc/passwd; fi
# Editors would write the variables into /etc, which is read-only. Programs get them from the compose file.
RUN mkdir -p /var/devcontainer && touch /var/devcontainer/.patchEtcEnvironmentMarker /var/devcontainer/.patchEtcProfileMarker
# No program changes the user of its caller.
RUN find / -xdev -type f -perm /6000 -exec chmod a-s {} +
USER dev
`;

function allowList(rules: readonly NetworkRule[]): string {
  const origins = [...new Set(rules.map(({ origin }) => origin.replace(/:\d+$/, '')))];
  const part = (origin: string): string => {
    const lines = rules
      .filter((rule) => rule.origin.replace(/:\d+$/, '') === origin)
      .map((rule) => `${rule.action === 'deny' ? '! ' : ''}${formatRule(rule)}\n`);
    return `\n# ${origin}\n${lines.join('')}`;
  };
  return `# What the dev container may reach: one host per line, *.example.com for all hosts below it, a port if not 443; "!" denies.
# The gateway reads this file as soon as you save it. In the dev container it is read-only.
${origins.map(part).join('')}`;
}

function envExample({ services, agsPackage, docker }: DevContainer): string {
  const images = services.map(
    ({ service, image }) => `# ${imageVariable(service.name)}=${image}
`,
  );
  return `# Copy to .env and uncomment what you change. The dev container can read it, so put no secrets here.
# BASE_IMAGE=${BASE_IMAGE}
# AGS_PACKAGE=${agsPackage}
# MEMORY=8g
${docker ? '# DOCKER_MEMORY=4g\n' : ''}${images.join('')}`;
}
