// run/planned-services.ts: the services of a run before anything is started. Without code of its own: every command knows of it.
import type { ServiceConfig } from '../protocol/service.ts';
import type { Connection, ServicePreset } from '../services/presets/preset.ts';

export interface PlannedService {
  readonly service: ServiceConfig;
  /** null: it is a program of the user's choice. */
  readonly preset: ServicePreset | null;
  readonly to: Connection;
  /** A loopback address that it alone has, in the sandbox of the task. */
  readonly address: string;
  readonly url: string;
  readonly programs:
    | { readonly path: readonly string[]; readonly stamps: readonly string[] }
    | { readonly missing: readonly string[] };
}

/** What has a name and an address of its own in the sandbox of the task. */
export interface Neighbour {
  readonly name: string;
  readonly address: string;
}

/** A service of the project's compose files. */
export interface ComposedService extends Neighbour {
  /** Those that the files declare; what an image exposes besides is known when it is there. */
  readonly ports: readonly number[];
}

/** The compose files of a project before anything is brought up. */
export interface PlannedCompose {
  /** The client, which runs in a sandbox, and what it is told before its command. */
  readonly client: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** The user's own file, laid over the others; null: there is none. */
  readonly override: string | null;
  /** What the client sees of the project, topmost first, and what of it does not exist. */
  readonly layers: readonly string[];
  readonly hidden: readonly string[];
  /** Named by the user; empty: all. */
  readonly chosen: readonly string[];
  readonly list: readonly ComposedService[];
  /** Files and directories that containers are to see, relative to the project. */
  readonly shared: readonly string[];
  readonly timeoutSeconds: number | null;
}

export interface PlannedServices {
  readonly list: readonly PlannedService[];
  readonly compose: PlannedCompose | null;
  /** By "address:port" in the sandbox of the task: whose door that is. */
  readonly doors: ReadonlyMap<string, { readonly name: string; readonly port: number }>;
  /** Lines for its /etc/hosts. */
  readonly hosts: string;
}

export const NO_SERVICES: PlannedServices = { list: [], compose: null, doors: new Map(), hosts: '' };

export function hasServices({ list, compose }: PlannedServices): boolean {
  return list.length > 0 || compose !== null;
}

/** In one word what it is. */
export function kindOf({ preset, service }: Pick<PlannedService, 'preset' | 'service'>): string {
  return preset?.name ?? (service.image === null ? 'command' : 'image');
}

/** Also the order of `services:` decides: 127.77.0.1 is the first. */
export function serviceAddress(place: number): string {
  return `127.77.0.${place + 1}`;
}

export function composeAddress(place: number): string {
  return `127.77.1.${place + 1}`;
}
