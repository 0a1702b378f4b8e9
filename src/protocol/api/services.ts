// protocol/api/services.ts: the server's answers about services.
import { z } from 'zod';
import { SERVICE_STATES } from '../service.ts';

const NAME = z.string().meta({ description: 'Its host name inside.' });
const KIND = z.string().meta({ description: 'Its preset, "image", "command", or "compose".' });
const URL = z.string().meta({ description: 'The URL for programs in the sandbox of the task.' });

export const ApiConfiguredServices = z.object({
  services: z.array(
    z.object({
      name: NAME,
      kind: KIND,
      url: URL,
      origin: z.string().meta({ description: 'The file and line that configures it.' }),
      problem: z.string().nullable().meta({ description: 'Why it cannot run here; null: it can run.' }),
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
      address: z.string().meta({ description: 'Its address inside.' }),
      ports: z.array(z.number()),
      url: URL,
      client: z.array(z.string()).nullable().meta({ description: 'The command that opens a client inside, as argv.' }),
      why: z.string().nullable().meta({ description: 'Why it failed. Hostile text.' }),
      lines: z.array(z.string()).meta({ description: 'For a failed service: the end of its log. Hostile text.' }),
      dataBytes: z.number().meta({ description: 'Size of its data, without the part that other tasks share.' }),
    }),
  ),
});
export type ApiServices = z.infer<typeof ApiServices>;

export const ApiServiceLog = z.object({
  text: z.string().meta({ description: 'The end of its output. Hostile text.' }),
  cut: z.boolean().meta({ description: 'The output was longer.' }),
});
export type ApiServiceLog = z.infer<typeof ApiServiceLog>;
