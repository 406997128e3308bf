import type { IncomingMessage, ServerResponse } from 'node:http';
import { Logger, ValidationPipe } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { SnowFlake } from 'snowdrift';
import { AppModule } from './app.js';

const app = await NestFactory.create(AppModule);
app.useGlobalPipes(new ValidationPipe({ whitelist: true }));
app.enableShutdownHooks(); // at SIGTERM: serves the last requests, then releases the worker ID
// After SIGTERM, a reply ends its connection. Otherwise Node serves a busy connection for as long as its client sends requests.
app.use((_request: IncomingMessage, response: ServerResponse, next: () => void) => {
  if (!app.getHttpServer().listening) response.setHeader('Connection', 'close');
  next();
});
await app.listen(process.env.PORT ?? 3000);
new Logger('SnowFlake').log(`Worker ID ${app.get(SnowFlake).workerId}`);
