import { Controller, Get } from '@nestjs/common';
import { HealthCheck, HealthCheckService } from '@nestjs/terminus';
import { SnowFlakeHealthIndicator } from 'snowdrift/nestjs';

@Controller('health')
export class Health {
  constructor(
    private readonly checks: HealthCheckService,
    private readonly ids: SnowFlakeHealthIndicator,
  ) {}

  /** Whether the process answers. It does not ask for IDs: a restart does not bring a database back. */
  @Get('live')
  live() {
    return { status: 'ok' };
  }

  /** Whether this pod has IDs. It does not ask the database: all pods share it, and would be unready at the same time. */
  @Get('ready')
  @HealthCheck()
  ready() {
    return this.checks.check([() => this.ids.isHealthy()]);
  }
}
