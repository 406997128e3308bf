import { Body, Controller, Get, NotFoundException, Param, Post } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { IsString, Length, NotContains } from 'class-validator';
import { ParseSnowFlakePipe } from 'snowdrift/nestjs';
import { Repository } from 'typeorm';
import { Customer, Order } from './entities.js';

class NewCustomer {
  @IsString()
  @Length(1, 200)
  @NotContains('\0') // PostgreSQL refuses it
  name!: string;
}

class NewOrder {
  @IsString()
  @Length(1, 200)
  @NotContains('\0')
  item!: string;
}

@Controller('customers')
export class Customers {
  constructor(
    @InjectRepository(Customer) private readonly customers: Repository<Customer>,
    @InjectRepository(Order) private readonly orders: Repository<Order>,
  ) {}

  @Post()
  create(@Body() { name }: NewCustomer) {
    return this.customers.save({ name });
  }

  @Post(':id/orders')
  async order(@Param('id', ParseSnowFlakePipe) customerId: string, @Body() { item }: NewOrder) {
    if (!(await this.customers.existsBy({ id: customerId }))) throw new NotFoundException();
    return this.orders.save({ customerId, item });
  }

  @Get(':id')
  async read(@Param('id', ParseSnowFlakePipe) id: string) {
    const customer = await this.customers.findOne({
      where: { id },
      relations: { orders: true },
      order: { orders: { id: 'ASC' } }, // by time
    });
    if (customer === null) throw new NotFoundException();
    return customer;
  }
}
