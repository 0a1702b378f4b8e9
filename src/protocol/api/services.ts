// protocol/api/services.ts: what the server says about services.
import { z } from 'zod';
import { SERVICE_STATES } from '../service.ts';

const NAME = z.string().meta({ description: 'Its name inside.' });
const KIND = z.string().meta({ description: 'Its preset, "image", "command", or "compose".' });
const URL = z.string().meta({ description: 'What programs in the sandbox of the task connect to.' });

export const ApiConfiguredServices = z.object({
  services: z.array(
    z.object({
      name: NAME,
      kind: KIND,
      url: URL,
      origin: z.string().meta({ description: 'The file and line that says so.' }),
      problem: z.string().nullable().meta({ description: 'Why it cannot run here; null: it can.' }),
      hint: z.string().nullable(),
    }),
  ),
});
export type ApiConfiguredServices = z.infer<typeof ApiConfiguredServices>;

export const ApiServices = z.object({
  services: z.array(
    z.object({
      name: NAME,
      kind: KIND,
      state: z.enum(SERVICE_STATES).meta({ description: 'stopped: the task is not running.' }),
      address: z.string().meta({ description: 'Where it is, inside.' }),
      ports: z.array(z.number()),
      url: URL,
      client: z.array(z.string()).nullable().meta({ description: 'What opens it from inside, as argv.' }),
      why: z.string().nullable().meta({ description: 'Why it failed. Hostile text.' }),
      lines: z.array(z.string()).meta({ description: 'Of one that failed, the end of its log. Hostile text.' }),
      dataBytes: z.number().meta({ description: 'What its data takes, besides what it shares with other tasks.' }),
    }),
  ),
});
export type ApiServices = z.infer<typeof ApiServices>;

export const ApiServiceLog = z.object({
  text: z.string().meta({ description: 'The end of what it printed. Hostile text.' }),
  cut: z.boolean().meta({ description: 'It printed more.' }),
});
export type ApiServiceLog = z.infer<typeof ApiServiceLog>;
