// protocol/export.ts: the format of exported tasks: a few files of known names and a manifest that describes them.
// Invariant: everything here is checked as hostile input, because anyone can make such a file.
import { z } from 'zod';
import { SERVICE_NAME } from './config/words.ts';
import { NETWORK_MODES } from './network.ts';
import { RUN_STATES } from './run-state.ts';

/** Format 2 adds data of services, which older versions cannot read; an export without such data stays format 1. */
export const EXPORT_FORMATS = [1, 2] as const;

/** The members of the archive; each service with data adds one more. */
export const MANIFEST = 'ags-export.json';
export const MEMBERS = {
  /** Everything up to the commit that the task started from; not with --thin. */
  base: 'base.pack',
  /** The commits of the task after that one. */
  work: 'work.pack',
  events: 'events.jsonl.gz',
  network: 'network.jsonl.gz',
} as const;
export type MemberName = (typeof MEMBERS)[keyof typeof MEMBERS] | DataName;
type DataName = `services/${string}.tar.gz`;

export function dataMember(service: string): DataName {
  return `services/${service}.tar.gz`;
}

export function isMemberName(name: string): name is MemberName {
  return (Object.values(MEMBERS) as string[]).includes(name) || isDataName(name);
}

function isDataName(name: string): boolean {
  const service = /^services\/(.+)\.tar\.gz$/.exec(name)?.[1];
  return service !== undefined && SERVICE_NAME.test(service);
}

export const EXPORT_LIMITS = {
  manifestBytes: 16 * 2 ** 20,
  /** Unpacked; a task's log stops growing a little after 256 MB. */
  eventBytes: 320 * 2 ** 20,
  networkBytes: 128 * 2 ** 20,
  lineBytes: 16 * 2 ** 20,
  /** All services together, unpacked. */
  dataBytes: 4 * 2 ** 30,
  dataEntries: 100_000,
  services: 64,
} as const;

/** Placeholders for paths of the exporting machine; import puts its own paths in their place. */
export const PORTABLE = {
  project: '/ags/project',
  home: '/ags/home',
  state: '/ags/state',
  cache: '/ags/cache',
  data: '/ags/data',
} as const;

const Oid = z.string().regex(/^[0-9a-f]{40}([0-9a-f]{24})?$/);
const Words = z.string().max(1_000_000);
const Word = z.string().max(500);
const Count = z.int().min(0).max(Number.MAX_SAFE_INTEGER);
/** Until the year 2100. */
const TimeMs = z.int().min(0).max(4_102_444_800_000);
const Bound = z.int().min(1).max(Number.MAX_SAFE_INTEGER).nullable();
const List = z.array(z.string().min(1).max(1000)).max(10_000);

/** A short branch name that git accepts, and that cannot be read as an option or another path. */
const BranchName = z.string().min(1).max(200).refine(isBranchName, { error: 'not the name of a branch' });

export function isBranchName(name: string): boolean {
  // eslint-disable-next-line no-control-regex
  if (/[\u0000- \u007f~^:?*[\\]|\.\.|@\{|\/\/|^[-/]|[/.]$/.test(name) || name === '@' || name === 'HEAD') return false;
  return name.split('/').every((part) => !part.startsWith('.') && !part.endsWith('.lock'));
}

export const DATA_VERSION = /^\d{1,4}(\.\d{1,4}){0,3}$/;

/** Rights of the task. Import treats them as requests. */
export const CarriedRules = z.strictObject({
  network: z.enum(NETWORK_MODES),
  allow: List,
  deny: List,
  tcp: List,
  publish: List,
  reveal: List,
  envPass: List,
  limits: z.record(z.string().max(40), z.string().max(40)),
});
export type CarriedRules = z.infer<typeof CarriedRules>;

export const CarriedService = z.strictObject({
  name: z.string().regex(SERVICE_NAME),
  kind: z
    .string()
    .regex(/^[a-z]{1,20}$/)
    .meta({ description: 'Its preset, "image" or "command".' }),
  version: z
    .string()
    .regex(DATA_VERSION)
    .nullable()
    .meta({ description: 'The version of the program that wrote the data, if known.' }),
  bytes: Count.max(EXPORT_LIMITS.dataBytes).meta({ description: 'Unpacked.' }),
  entries: Count.max(EXPORT_LIMITS.dataEntries),
});
export type CarriedService = z.infer<typeof CarriedService>;

export const ExportManifest = z.strictObject({
  format: z.literal(EXPORT_FORMATS),
  ags: z.string().max(50).meta({ description: 'The version that wrote it.' }),
  exportedAt: z.iso.datetime(),
  members: z
    .array(
      z.strictObject({
        name: z.string().refine(isMemberName, { error: 'not a part of an export' }),
        bytes: Count,
        sha256: z.string().regex(/^[0-9a-f]{64}$/),
      }),
    )
    .max(Object.values(MEMBERS).length + EXPORT_LIMITS.services),
  task: z.strictObject({
    name: z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/),
    createdAt: z.iso.datetime(),
    goal: Words,
    agent: z.string().regex(/^[a-z][a-z0-9-]{0,40}$/),
    command: z.array(Words).min(1).max(1000).optional(),
    model: Word.optional(),
    interactive: z.boolean(),
    maxSeconds: Bound,
    maxCostMicros: Bound,
    maxTurns: Bound,
    maxTokens: Bound.optional(),
  }),
  run: z.strictObject({
    state: z.enum(RUN_STATES),
    reason: Words.optional(),
    startedAtMs: TimeMs,
    endedAtMs: TimeMs.optional(),
    exitCode: z.int().min(0).max(255).nullable(),
    label: Word,
    number: z.int().min(1).max(1_000_000),
    turns: z.int().min(1).max(1_000_000).optional(),
    used: z.strictObject({ inputTokens: Count, outputTokens: Count, costMicros: Count.nullable() }).optional(),
  }),
  work: z.strictObject({
    objectFormat: z.enum(['sha1', 'sha256']),
    root: Oid.meta({ description: 'The commit that changes are compared with.' }),
    base: Oid.meta({ description: 'The commit that the agent started from; differs from root only in a fork.' }),
    commit: Oid.meta({ description: 'The last commit on the branch of the task.' }),
    branch: BranchName.nullable().meta({ description: 'The branch of the root commit.' }),
    notKept: Words.nullable(),
    refused: z.array(z.strictObject({ path: z.string().max(4096), reason: Word })).max(10_000),
  }),
  merges: z
    .array(z.strictObject({ kind: z.enum(['merge', 'undo']), branch: BranchName, commit: Oid, at: z.iso.datetime() }))
    .max(10_000),
  rules: CarriedRules,
  services: z
    .array(CarriedService)
    .max(EXPORT_LIMITS.services)
    .optional()
    .meta({ description: 'Services with data in the export; only in format 2.' }),
});
export type ExportManifest = z.infer<typeof ExportManifest>;

/** One line of the network log. */
export const CarriedDecision = z.object({
  at: z.iso.datetime(),
  by: z.enum(['connect', 'http', 'socks5', 'tls', 'endpoint', 'tcp', 'name']),
  host: Word,
  port: z.int().min(0).max(65_535),
  method: z.string().max(20).optional(),
  path: Words.optional(),
  verdict: z.enum(['allowed', 'denied', 'failed']),
  reason: Words,
  unknown: z.literal(true).optional(),
  address: z.string().max(100).optional(),
  program: Word.optional(),
  bytesOut: Count,
  bytesIn: Count,
  ms: z.number().min(0).max(Number.MAX_SAFE_INTEGER),
});
