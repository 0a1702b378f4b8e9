// run/sandbox-key.ts: a name for everything that decides what a sandbox is: two with the same name are made in the same way. What the
// attacks have shown of one holds for the other.
import { readFileSync, statSync } from 'node:fs';
import { shortHash } from '../lib/short-hash.ts';
import type { RunPlan } from './plan-run.ts';
import type { World } from './host-context.ts';

export function sandboxKey(world: World, plan: RunPlan): string {
  const { configured: config, host, image, network, workspace } = plan;
  const { mode, presets, rules, addresses, tcp, publish, limits } = config.network;
  const builder = host.engine === null ? host.programs.bwrap : host.engine.program;
  const { mtimeMs, size } = statSync(builder);
  const parts = [
    readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim(),
    world.kernel,
    world.uid,
    // Another build of ags may make sandboxes in another way.
    statSync(import.meta.filename).mtimeMs,
    [host.engine?.name ?? 'native', builder, mtimeMs, size],
    engineKey(host.engine),
    [host.cgroupPlan.kind, 'holds' in host.cgroupPlan ? host.cgroupPlan.holds : []],
    [image?.id ?? null, config.runtime, config.user, workspace, network.spec.kind],
    [config.toolDirs, config.mounts, config.etc, config.hide, config.reveal],
    [config.envPass, config.pathEnv, Object.keys(config.envSet)],
    [config.limits, config.kernel],
    // What is beside it is attacked as well.
    [config.docker.enabled, config.compose !== null, config.services.length > 0],
    { mode, presets, rules: rules.map((rule) => ({ ...rule, origin: '' })), addresses, tcp, publish, limits },
  ];
  return shortHash(JSON.stringify(parts));
}

/** Which engine it is, of those that one program can speak to, without asking it. One that was started anew may be another, or set up otherwise. */
function engineKey(engine: RunPlan['host']['engine']): readonly unknown[] {
  if (engine === null) return [];
  const { far, socket, rootless, options } = engine;
  const began = socket === null ? null : (statSync(socket, { throwIfNoEntry: false })?.mtimeMs ?? null);
  return [far, socket, began, rootless, options];
}
