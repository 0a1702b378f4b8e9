// protocol/config/compose.ts: a project's own compose files, as they are written: `compose: true`, or keys.
import { z } from 'zod';
import { flag, list, section, text } from './forms.ts';
import { BELOW, COMPOSE_NAME, DURATION, ENV_NAME, WORDS } from './words.ts';

export const compose = section({
  enabled: flag.meta({
    description: 'Whether they are brought up. Any other key says yes as well.',
    examples: [true],
    needsTrust: true,
  }),
  files: list(text(BELOW, 'a path in the project'), 'files of the project').meta({
    description:
      'The compose files, the later ones over the earlier. Without it: compose.yaml or docker-compose.yaml (or .yml), with its override beside it.',
    examples: [['docker-compose.yaml', 'docker-compose.ci.yaml']],
    needsTrust: true,
  }),
  override: text(BELOW, 'a path in the project').meta({
    description:
      'A file of your own that is laid over them all, if it is there: it is read from your checkout, committed or not. Without it: override.user.yaml.',
    examples: ['override.user.yaml'],
    needsTrust: true,
  }),
  profiles: list(text(COMPOSE_NAME, WORDS.composeName), 'names of profiles').meta({
    description: 'Profiles that are switched on.',
    examples: [['dev']],
    needsTrust: true,
  }),
  services: list(text(COMPOSE_NAME, WORDS.composeName), 'names of services').meta({
    description: 'Only these, and what they depend on. Without it: all.',
    examples: [['db', 'cache']],
    needsTrust: true,
  }),
  env: z
    .record(text(ENV_NAME, WORDS.envName), z.string({ error: 'a text; put it in quotes' }), {
      error: 'names, each with its value',
    })
    .meta({
      description: 'Variables for what the files leave open (`$TAG`). Nothing of your own environment is there.',
      examples: [{ TAG: '15' }],
      needsTrust: true,
    }),
  timeout: text(DURATION, WORDS.duration).meta({
    description: 'How long it may take until all are up, images included.',
    examples: ['10m'],
    needsTrust: true,
  }),
})
  .partial()
  .meta({
    description:
      "The project's own compose files, brought up for each task in an engine of its own ([compose.md](compose.md)). `compose: true` is short for `enabled`.",
  });
