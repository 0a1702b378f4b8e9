// protocol/config/docker.ts: Docker inside sandboxes, as it is written: `docker: true`, or keys.
import { flag, list, section, text } from './forms.ts';
import { REGISTRY, WORDS } from './words.ts';

export const docker = section({
  enabled: flag.meta({
    description: 'An engine of its own for each task: `docker build`, `run`, compose and Testcontainers work inside.',
    examples: [true],
    needsTrust: true,
  }),
  registries: list(text(REGISTRY, WORDS.registry), 'registries such as ghcr.io').meta({
    description:
      'Registries beside docker.io that images may come from. With `=` and an address: where it is really asked, a mirror of your own.',
    examples: [['ghcr.io', 'docker.io=https://mirror.corp']],
    needsTrust: true,
  }),
})
  .partial()
  .meta({
    description:
      'Docker inside sandboxes, apart from the engine of this machine ([isolated-docker.md](isolated-docker.md)). `docker: true` is short for `enabled`.',
  });
