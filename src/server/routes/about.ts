// server/routes/about.ts: this machine and its projects.
import { z } from 'zod';
import { AddProject, ApiAbout, ApiBranches, ApiProject, ApiProjects, type ApiAgent } from '../../protocol/api/api.ts';
import { listAgents, sandboxWorks, taskDefaults, type AgentFacts } from '../../agent-setup/about.ts';
import { projectBranches } from '../../projects/known-projects.ts';
import { route, type Route } from './route.ts';

const Nothing = z.object({});

export const ABOUT_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/about',
    summary: 'This machine: version, whether sandboxes work, agents, defaults',
    answer: ApiAbout,
    async run({ world, version }) {
      const [sandbox, agents, defaults] = [
        await sandboxWorks(world),
        await listAgents(world),
        await taskDefaults(world),
      ];
      return {
        version,
        sandbox,
        agents: agents.map(apiAgent),
        defaults: {
          agent: defaults.agent,
          parallel: defaults.parallel,
          maxSeconds: defaults.seconds,
          maxCostMicros: defaults.costMicros,
          maxTurns: defaults.turns,
        },
      };
    },
  }),
  route({
    method: 'GET',
    path: '/api/projects',
    summary: 'Projects that were added, that tasks were started in, or that are being cloned',
    answer: ApiProjects,
    async run({ board, places, seq }) {
      const at = seq('projects');
      await board.look('all');
      return { projects: await places.list(), seq: at };
    },
  }),
  route({
    method: 'POST',
    path: '/api/projects',
    summary: 'Add a directory of this machine, or clone a repository',
    body: AddProject,
    answer: ApiProject,
    run: ({ places }, { body }) => ('url' in body ? places.clone(body.url) : places.add(body.path)),
  }),
  route({
    method: 'DELETE',
    path: '/api/projects/{project}',
    summary: 'Take a project off the list; its files and tasks stay',
    answer: Nothing,
    async run({ places }, { ids }) {
      places.forget(ids['project'] ?? '');
      return {};
    },
  }),
  route({
    method: 'GET',
    path: '/api/projects/{project}/branches',
    summary: 'Branches that a task can begin from, or be merged into',
    answer: ApiBranches,
    run: ({ world, places }, { ids }) => projectBranches(world, places.path(ids['project'] ?? '')),
  }),
];

function apiAgent({ agent, program, signIn }: AgentFacts): ApiAgent {
  const ways = agent.signIns.map(({ title }) => title).join(', or ');
  return {
    name: agent.name,
    title: agent.title,
    installed: program !== null,
    version: program?.version ?? null,
    from: program === null ? null : (program.path ?? (program.source === 'built-in' ? 'part of ags' : 'ags')),
    signedIn:
      signIn.where === 'not needed'
        ? 'not-needed'
        : signIn.kind === null
          ? 'no'
          : signIn.problem === null
            ? 'yes'
            : 'expired',
    signIn:
      signIn.where === 'not needed'
        ? null
        : signIn.kind === null || signIn.problem !== null
          ? `Sign in with ${ways}: ags auth ${agent.name}`
          : signIn.variable === null
            ? `${KINDS[signIn.kind]} ending in ${signIn.ending ?? '…'}`
            : `${KINDS[signIn.kind]} in ${signIn.variable}`,
  };
}

const KINDS = { 'api-key': 'API key', token: 'Token', login: 'Log-in' } as const;
