// protocol/config/compose.ts: the key `compose`, for a project's own compose files: `compose: true`, or keys.
import { z } from 'zod';
import { flag, list, section, text } from './forms.ts';
import { BELOW, COMPOSE_NAME, DURATION, ENV_NAME, WORDS } from './words.ts';

export const compose = section({
  enabled: flag.meta({
    description: 'Start the compose files. Any other key of this section implies it.',
    examples: [true],
    needsTrust: true,
  }),
  files: list(text(BELOW, 'a path in the project'), 'files of the project').meta({
    description:
      'The compose files; later ones override earlier ones. Default: compose.yaml or docker-compose.yaml (or .yml), with its override file.',
    examples: [['docker-compose.yaml', 'docker-compose.ci.yaml']],
    needsTrust: true,
  }),
  override: text(BELOW, 'a path in the project').meta({
    description:
      'A file of your own that overrides all of them, if it exists. ags reads it from your checkout, committed or not. Default: override.user.yaml.',
    examples: ['override.user.yaml'],
    needsTrust: true,
  }),
  profiles: list(text(COMPOSE_NAME, WORDS.composeName), 'names of profiles').meta({
    description: 'Profiles to enable.',
    examples: [['dev']],
    needsTrust: true,
  }),
  services: list(text(COMPOSE_NAME, WORDS.composeName), 'names of services').meta({
    description: 'Start only these services and their dependencies. Default: all.',
    examples: [['db', 'cache']],
    needsTrust: true,
  }),
  env: z
    .record(text(ENV_NAME, WORDS.envName), z.string({ error: 'a text; put it in quotes' }), {
      error: 'names, each with its value',
    })
    .meta({
      description: 'Variables for interpolation in the files (`$TAG`). Your own environment is not used.',
      examples: [{ TAG: '15' }],
      needsTrust: true,
    }),
  timeout: text(DURATION, WORDS.duration).meta({
    description: 'Time limit until all services are up, including image pulls.',
    examples: ['10m'],
    needsTrust: true,
  }),
})
  .partial()
  .meta({
    description:
      "The project's own compose files, started for each task in its private Docker daemon ([compose.md](../services/compose.md)). `compose: true` is short for `enabled`.",
  });
