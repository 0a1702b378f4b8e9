// protocol/api/id.ts: what projects and tasks are called in addresses. See api.ts.
import { z } from 'zod';

export const Id = z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/);
