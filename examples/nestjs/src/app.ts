import { Module } from '@nestjs/common';
import { TerminusModule } from '@nestjs/terminus';
import { TypeOrmModule } from '@nestjs/typeorm';
import { SnowFlakeHealthIndicator, SnowFlakeModule } from 'snowdrift/nestjs';
import { Customers } from './customers.js';
import { leases, options } from './database.js';
import { Customer, Order } from './entities.js';
import { Health } from './health.js';

@Module({
  imports: [
    TypeOrmModule.forRoot(options),
    TypeOrmModule.forFeature([Customer, Order]),
    SnowFlakeModule.forRoot({ from: leases, datacenterId: 1 }), // leases a free worker ID
    TerminusModule,
  ],
  controllers: [Customers, Health],
  providers: [SnowFlakeHealthIndicator],
})
export class AppModule {}
