// server/routes/services.ts: the services of a project, and those of a task during and after its run.
import { ApiConfiguredServices, ApiServiceLog, ApiServices } from '../../protocol/api/services.ts';
import { readBoundedLog } from '../../store/bounded-log.ts';
import { configuredServices, dataBytes, serviceOf, servicesOf } from '../../services/view.ts';
import { route, type Route } from './route.ts';

const LOG_BYTES = 64 * 1024;

export const SERVICE_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/projects/{project}/services',
    summary: 'The configured services, and whether each can run here',
    answer: ApiConfiguredServices,
    async run({ context, knownProjects }, { ids }) {
      return { services: [...(await configuredServices(context, knownProjects.path(ids['project'] ?? '')))] };
    },
  }),
  route({
    method: 'GET',
    path: '/api/tasks/{task}/services',
    summary: 'The services of a task: state, address, URL',
    answer: ApiServices,
    async run({ task }, { ids }) {
      const stored = await task(ids['task'] ?? '');
      return {
        services: await Promise.all(
          servicesOf(stored).map(async ({ layer: _layer, ports, client, lines, ...one }) => ({
            ...one,
            ports: [...ports],
            client: client === null ? null : [...client],
            lines: [...lines],
            dataBytes: await dataBytes(stored, one.name),
          })),
        ),
      };
    },
  }),
  route({
    method: 'GET',
    path: '/api/tasks/{task}/services/{service}/log',
    summary: 'The end of a service log',
    answer: ApiServiceLog,
    async run({ task }, { ids }) {
      const stored = await task(ids['task'] ?? '');
      return readBoundedLog(serviceOf(stored, ids['service'] ?? '').log, LOG_BYTES);
    },
  }),
];
