// protocol/config/docker.ts: the key `docker`, for nested Docker: `docker: true`, or keys.
import { flag, list, section, text } from './forms.ts';
import { REGISTRY, WORDS } from './words.ts';

export const docker = section({
  enabled: flag.meta({
    description:
      'Give each task a private Docker daemon: `docker build`, `run`, compose and Testcontainers work inside.',
    examples: [true],
    needsTrust: true,
  }),
  registries: list(text(REGISTRY, WORDS.registry), 'registries such as ghcr.io').meta({
    description:
      'Registries besides docker.io that images may come from. With `=` and a URL, ags uses that mirror in place of the registry.',
    examples: [['ghcr.io', 'docker.io=https://mirror.corp']],
    needsTrust: true,
  }),
})
  .partial()
  .meta({
    description:
      'Docker inside sandboxes; the Docker daemon of this machine is never exposed ([nested-docker.md](../containers/nested-docker.md)). `docker: true` is short for `enabled`.',
  });
