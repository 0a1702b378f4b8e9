// protocol/api/id.ts: the IDs of projects and tasks in URLs.
import { z } from 'zod';

export const Id = z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/);
